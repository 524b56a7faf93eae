import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Resolver } from 'node:dns/promises'
import { execFileSync } from 'node:child_process'
import { afterEach, describe, expect, test } from 'vitest'

import { hasNft } from '../../support/network-namespace.ts'
import { eventually } from '../support.ts'
import { echoDatagrams, echoServer, member, serviceOf, TunnelStage } from '../tunnel/support.ts'

// Goal: programs on a host reach services by their addresses and names, and nothing remains when a
// service is removed. Method: a real router in a separate network namespace; the test plays its
// controller.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const OPTIONS = '{mode: tproxy, resolver: "udp://127.0.0.1:5353"}'
const intercept = (addresses: readonly string[], port: number, more: object = {}) => ({
  'intercept.v1': {
    protocols: ['tcp', 'udp'],
    addresses,
    portRanges: [{ low: port, high: port }],
    ...more,
  },
})

async function running(
  events: Parameters<typeof TunnelStage.create>[0],
  options = OPTIONS,
): Promise<TunnelStage> {
  const stage = await TunnelStage.create(events, options)
  closing.push(() => stage.close())
  return stage
}

async function echoes(): Promise<{ readonly tcp: object; readonly udp: object }> {
  const [tcp, udp] = [await echoServer(), await echoDatagrams()]
  closing.push(tcp.close, udp.close)
  const host = { address: '127.0.0.1' }
  return {
    tcp: { 'host.v1': { ...host, protocol: 'tcp', port: tcp.port } },
    udp: { 'host.v1': { ...host, protocol: 'udp', port: udp.port } },
  }
}

const resolver = new Resolver({ timeout: 5000, tries: 1 })
resolver.setServers(['127.0.0.1:5353'])

/** The answer to a word that the test sends to an address. */
async function echoed(host: string, port: number, word = 'hello'): Promise<string> {
  const socket = connect({ host, port })
  closing.push(() => void socket.destroy())
  socket.write(word)
  const [read] = (await once(socket, 'data')) as [Buffer]
  socket.end()
  return read.toString()
}

async function echoedDatagram(host: string, port: number): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  closing.push(() => {
    socket.close()
  })
  socket.send('datagram', port, host)
  const [read] = (await once(socket, 'message')) as [Buffer]
  return read.toString()
}

async function reset(host: string, port: number): Promise<string> {
  const socket: Socket = connect({ host, port })
  socket.on('error', () => undefined)
  closing.push(() => void socket.destroy())
  try {
    const [read] = (await once(socket, 'data')) as [Buffer]
    return read.toString()
  } catch (error) {
    return (error as { code?: string }).code ?? ''
  }
}

const routes = () =>
  ['-4', '-6'].flatMap((family) =>
    execFileSync('ip', [family, 'route', 'show', 'table', 'local', 'proto', '187'])
      .toString()
      .split('\n')
      .flatMap((line) => /local (\S+)/.exec(line)?.[1] ?? []),
  )

/** The number of sockets of this host that are bound to a port and not connected. */
const boundAt = (port: number): number => {
  const at = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const isBound = (line: string) => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/)
    return local.endsWith(at) && /^0+:0+$/.test(remote) && (state === '0A' || state === '07')
  }
  return ['tcp', 'tcp6', 'udp', 'udp6']
    .flatMap((table) => readFileSync(`/proc/self/net/${table}`, 'utf8').split('\n'))
    .filter(isBound).length
}

const intercepted = (stage: TunnelStage, count = 1) =>
  eventually(() => stage.network.logged('service intercepted').length).toBe(count)

describe('A service that a router intercepts', () => {
  test.each([
    ['without encryption', false],
    ['with encryption', true],
  ])('is reached by its name, %s', async (_what, isEncrypted) => {
    const { tcp } = await echoes()
    const stage = await running(
      serviceOf(
        's1',
        { ...tcp, ...intercept(['Web.Corp.example'], 80) },
        ['Bind', 'Dial'],
        isEncrypted,
      ),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    const [address = ''] = await resolver.resolve4('web.corp.example')
    expect(address).toBe('100.64.0.2')
    expect(await echoed(address, 80)).toBe('hello')
    const { 1011: appData } = stage.controller.asked[0]?.peerData ?? {}
    expect(JSON.parse(Buffer.from(appData ?? []).toString())).toMatchObject({
      dst_protocol: 'tcp',
      dst_ip: '100.64.0.2',
      dst_hostname: 'web.corp.example',
      dst_port: '80',
      src_protocol: 'tcp',
    })
  })

  test('is reached by a name below its wildcard domain, even if the name was never queried before', async () => {
    const { tcp } = await echoes()
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['*.example'], 443) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    const [one = ''] = await resolver.resolve4('a.shop.example')
    const [other = ''] = await resolver.resolve4('b.shop.example')
    expect(one).not.toBe(other)
    expect(await resolver.resolve4('A.shop.example')).toEqual([one])
    expect(await echoed(one, 443)).toBe('hello')
    expect(await echoed(other, 443)).toBe('hello')
  })

  test.each([
    ['an IPv4 address', '10.9.9.9', '10.9.9.9'],
    ['an address in a large IPv4 network', '10.9.0.0/16', '10.9.200.7'],
    ['an address in a small IPv4 network', '10.9.9.0/28', '10.9.9.14'],
    ['an IPv6 address', 'fd77::5', 'fd77::5'],
    ['an address in a large IPv6 network', 'fd77::/64', 'fd77::1:2'],
  ])('is reached at %s', async (_what, address, asked) => {
    const { tcp } = await echoes()
    const protocols = { protocols: ['tcp'] }
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept([address], 8080, protocols) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    await eventually(() => stage.network.logged('port not intercepted')).toEqual([])
    await expect.poll(() => echoed(asked, 8080).catch(() => '')).toBe('hello')
  })

  test.each(['10.9.9.9', 'fd77::5', '10.9.9.0/30'])(
    'is reached by datagrams to %s',
    async (address) => {
      const { udp } = await echoes()
      const stage = await running(
        serviceOf('s1', { ...udp, ...intercept([address], 53) }, ['Bind', 'Dial'], true),
      )
      await stage.controller.terminator('s1')
      await intercepted(stage)
      await eventually(() => boundAt(53)).toBeGreaterThan(0)
      const asked = address === '10.9.9.0/30' ? '10.9.9.2' : address
      expect(await echoedDatagram(asked, 53)).toBe('datagram')
    },
  )

  test('gets the connection if it has the most specific of several matching addresses', async () => {
    const { tcp } = await echoes()
    const protocols = { protocols: ['tcp'] }
    const both: ('Bind' | 'Dial')[] = ['Bind', 'Dial']
    const stage = await running([
      ...serviceOf('s1', { ...tcp, ...intercept(['10.9.0.0/16'], 80, protocols) }, both),
      ...serviceOf('s2', { ...tcp, ...intercept(['10.9.1.0/24'], 80, protocols) }, both),
      ...serviceOf('s3', { ...tcp, ...intercept(['10.9.1.1'], 80, protocols) }, both),
    ])
    for (const id of ['s1', 's2', 's3']) await stage.controller.terminator(id)
    await intercepted(stage, 3)
    for (const host of ['10.9.2.2', '10.9.1.2', '10.9.1.1']) {
      await expect.poll(() => echoed(host, 80).catch(() => '')).toBe('hello')
    }
    const asked = stage.controller.asked.map(({ serviceName }) => serviceName)
    expect(asked).toEqual(['name of s1', 'name of s2', 'name of s3'])
  })

  test('is dialed with the instance and the source address that its config specifies', async () => {
    const { tcp } = await echoes()
    const more = { dialOptions: { identity: '$dst_hostname' }, sourceIp: '$src_ip:$src_port' }
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['db.example'], 80, more) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    const [address = ''] = await resolver.resolve4('db.example')
    const socket = connect(80, address)
    closing.push(() => void socket.destroy())
    await eventually(() => stage.controller.asked.length).toBe(1)
    const [asked] = stage.controller.asked
    expect(asked?.instanceId).toBe('db.example')
    expect(Buffer.from(asked?.peerData[1011] ?? []).toString()).toMatch(
      /"source_addr":"100\.64\.0\.2:[0-9]+"/,
    )
  })

  test('is reached by its internationalized name', async () => {
    const { tcp } = await echoes()
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['bücher.example'], 443) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    const [address = ''] = await resolver.resolve4('xn--bcher-kva.example')
    expect(await echoed(address, 443)).toBe('hello')
  })

  test('is reached at its valid addresses if another of its addresses is invalid, and the log contains the invalid one', async () => {
    const { tcp } = await echoes()
    const addresses = ['good.example', 'http://other.example']
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(addresses, 443) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    const [address = ''] = await resolver.resolve4('good.example')
    expect(await echoed(address, 443)).toBe('hello')
    const [logged] = stage.network.logged('part of a service not intercepted')
    expect(logged?.fields).toMatchObject({
      serviceId: 's1',
      service: 'name of s1',
      reason: 'http://other.example is no address, network, name or *.domain',
    })
  })

  test.runIf(hasNft())('is reached at every port of a wide range, over TCP and UDP', async () => {
    const { tcp, udp } = await echoes()
    const portRanges = [{ low: 50_000, high: 60_000 }]
    const only = (protocol: string) => ({ protocols: [protocol], portRanges })
    const both: ('Bind' | 'Dial')[] = ['Bind', 'Dial']
    const stage = await running([
      ...serviceOf('s1', { ...tcp, ...intercept(['media.example'], 1, only('tcp')) }, both),
      ...serviceOf('s2', { ...udp, ...intercept(['media.example'], 1, only('udp')) }, both),
    ])
    for (const id of ['s1', 's2']) await stage.controller.terminator(id)
    await intercepted(stage, 2)
    expect(stage.network.logged('port not intercepted')).toEqual([])
    const [address = ''] = await resolver.resolve4('media.example')
    for (const port of [50_000, 54_321, 60_000]) {
      expect(await echoed(address, port)).toBe('hello')
      expect(await echoedDatagram(address, port)).toBe('datagram')
    }
    const dialed = stage.controller.asked.map(({ serviceName, peerData }) => {
      const appData = JSON.parse(Buffer.from(peerData[1011] ?? []).toString()) as object
      return [serviceName, appData]
    })
    const of = (protocol: string, port: string) =>
      expect.objectContaining({
        dst_protocol: protocol,
        dst_hostname: 'media.example',
        dst_port: port,
        src_ip: address,
      })
    expect(dialed).toEqual(
      ['50000', '54321', '60000'].flatMap((port) => [
        ['name of s1', of('tcp', port)],
        ['name of s2', of('udp', port)],
      ]),
    )
    expect(await reset(address, 49_999)).toBe('ECONNREFUSED')
    await stage.close()
    expect(execFileSync('nft', ['list', 'ruleset']).toString()).toBe('')
  })

  test('has no route, port or connection after the right to dial it was revoked', async () => {
    const { tcp } = await echoes()
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['10.9.9.9', 'a.example'], 80) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    await eventually(routes).toEqual(['10.9.9.9', '100.64.0.0/10'])
    const socket = connect(80, '10.9.9.9')
    socket.on('error', () => undefined)
    closing.push(() => void socket.destroy())
    socket.write('hello')
    await once(socket, 'data')
    stage.controller.change([member('Dial', 's1', false)])
    await eventually(() => socket.destroyed || socket.readableEnded).toBe(true)
    await eventually(routes).toEqual(['100.64.0.0/10'])
    await expect(resolver.resolve4('a.example')).rejects.toThrow('EREFUSED')
    expect(boundAt(80)).toBe(0)
  })

  test('is reached neither at another address nor at another port, even if its port is bound on all addresses of the host', async () => {
    const { tcp } = await echoes()
    const protocols = { protocols: ['tcp'] }
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['10.9.0.0/16'], 80, protocols) }, ['Bind', 'Dial']),
    )
    await stage.controller.terminator('s1')
    await intercepted(stage)
    await eventually(() => boundAt(80)).toBe(1)
    expect(await reset('127.0.0.1', 80)).toBe('ECONNRESET')
    expect(await reset('10.9.0.1', 81)).toBe('ECONNREFUSED')
  })

  test('does not interrupt connections of other services when its port is bound on all addresses of the host', async () => {
    const { tcp } = await echoes()
    const protocols = { protocols: ['tcp'] }
    const both: ('Bind' | 'Dial')[] = ['Bind', 'Dial']
    const stage = await running([
      ...serviceOf('s1', { ...tcp, ...intercept(['10.9.9.9'], 80, protocols) }, both),
    ])
    await stage.controller.terminator('s1')
    await intercepted(stage)
    await eventually(() => boundAt(80)).toBe(1)
    const socket = connect(80, '10.9.9.9')
    closing.push(() => void socket.destroy())
    socket.write('one')
    await once(socket, 'data')
    stage.controller.change(
      serviceOf('s2', { ...tcp, ...intercept(['10.8.0.0/16'], 80, protocols) }, both),
    )
    await intercepted(stage, 2)
    await expect.poll(() => echoed('10.8.1.1', 80).catch(() => '')).toBe('hello')
    socket.write('two')
    const [again] = (await once(socket, 'data')) as [Buffer]
    expect(again.toString()).toBe('two')
  })

  test('is not intercepted at a port that another process uses, and the router logs an error', async () => {
    const { tcp } = await echoes()
    const server = createServer()
    await new Promise<void>((done) => server.listen(80, '0.0.0.0', done))
    closing.push(() => {
      server.close()
    })
    const stage = await running(
      serviceOf('s1', { ...tcp, ...intercept(['10.9.9.9'], 80) }, ['Bind', 'Dial']),
    )
    await eventually(() => stage.network.logged('port not intercepted').length).toBe(1)
  })
})

describe('Routes on the host of a tunneler', () => {
  test('that a killed router left behind are removed at the next start', async () => {
    const left = ['10.7.0.0/16', '10.8.8.8']
    const first = await running(
      serviceOf('s1', intercept(left, 80, { protocols: ['tcp'] }), ['Dial']),
    )
    await eventually(() => routes().length).toBe(3)
    const shown = execFileSync('ip', ['-j', 'route', 'show', 'table', 'local', 'proto', '187'])
    const [{ metric } = { metric: 0 }] = JSON.parse(shown.toString()) as { metric: number }[]
    await first.close()
    await eventually(routes).toEqual([])
    const as = ['proto', '187', 'metric', String(metric)]
    for (const network of left) {
      const route = ['route', 'add', 'local', network, 'dev', 'lo', 'table', 'local']
      execFileSync('ip', [...route, ...as])
    }
    await eventually(routes).toEqual(left)
    await running([])
    await eventually(routes).toEqual(['100.64.0.0/10'])
  })

  test('that another router of the host created are kept', async () => {
    const other = ['route', 'add', 'local', '10.6.0.0/16', 'dev', 'lo', 'table', 'local']
    execFileSync('ip', [...other, 'proto', '187', 'metric', '1234567'])
    const stage = await running([])
    await stage.close()
    expect(routes()).toEqual(['10.6.0.0/16'])
    execFileSync('ip', ['route', 'del', 'local', '10.6.0.0/16', 'dev', 'lo', 'table', 'local'])
  })
})

test('the tunneler refuses DNS queries for unknown names, and returns no IPv6 address for a service name', async () => {
  await running(serviceOf('s1', intercept(['a.example'], 80), ['Dial']))
  await expect.poll(() => resolver.resolve4('a.example').catch(() => [])).toHaveLength(1)
  await expect(resolver.resolve4('b.example')).rejects.toThrow('EREFUSED')
  await expect(resolver.resolve6('a.example')).rejects.toThrow('ENODATA')
})

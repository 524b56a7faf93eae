import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Resolver } from 'node:dns/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'

import { addressesMessage } from '../../src/channel/messages/control.ts'
import { hasNft } from '../support/network-namespace.ts'
import { eventually } from '../router/support.ts'
import { echoServer, member, serviceOf, TunnelStage } from '../router/tunnel/support.ts'

// The attack: the writer of a service intercepts foreign addresses on the hosts of its users (the
// host itself, its network, its controllers, all addresses), another host uses addresses that only
// local programs may use, or a route outlives its service. A router runs in a separate network
// namespace, in which the first test of this file runs the others.

const execute = promisify(execFile)
const CONTROLLER_NAME = 'ctrl.corp.example'
const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const ip = (command: string): string => execFileSync('ip', command.split(' ')).toString()
const routes = (): readonly string[] =>
  ['-4', '-6'].flatMap((family) =>
    ip(`${family} route show table local proto 187`)
      .split('\n')
      .flatMap((line) => /local (\S+)/.exec(line)?.[1] ?? []),
  )

const taking = (addresses: readonly string[], high = 80) =>
  serviceOf(
    's1',
    {
      'intercept.v1': { protocols: ['tcp'], addresses, portRanges: [{ low: 80, high }] },
    },
    ['Dial'],
  )

async function running(events: Parameters<typeof TunnelStage.create>[0]): Promise<TunnelStage> {
  const stage = await TunnelStage.create(events, '{mode: tproxy, resolver: "udp://127.0.0.1:5353"}')
  closing.push(() => stage.close())
  return stage
}

async function withAddress(cidr: string): Promise<void> {
  ip(`address add ${cidr} dev lo`)
  closing.push(() => void ip(`address del ${cidr} dev lo`))
}

/** A router that hosts the service, with a data model that the test changes. */
const hosted = serviceOf('s0', {
  'host.v1': { protocol: 'tcp', address: '127.0.0.1', port: 9 },
})

/** Makes the test's controller send a list of other members at other addresses. */
async function withMembers(
  { controller, network }: TunnelStage,
  named: readonly string[] = [],
): Promise<void> {
  await controller.terminator('s0')
  const members = ['tls:198.51.100.9:6262', ...named.map((name) => `tls:${name}:6262`)]
  const controllers = [controller.scripted.address, ...members].map((address, at) => ({
    id: at === 0 ? 'a' : `other${at}`,
    addresses: [address],
    clientApis: [],
    publicKeySha256: new Uint8Array(),
  }))
  controller.scripted.send(
    addressesMessage({
      controllers,
      removed: [],
      index: 2,
      configurationIndex: 2,
      isLeader: true,
    }),
  )
  await eventually(() => network.logged('cannot reach a controller').length).not.toBe(0)
}

describe('A service does not intercept', () => {
  test.each([
    ['the loopback address of this host', ['127.0.0.1']],
    ['the loopback network of this host', ['127.0.0.0/8']],
    ['the IPv6 loopback address of this host', ['::1']],
    ['the loopback address of this host as an IPv4-mapped IPv6 address', ['::ffff:127.0.0.1']],
    ['a link-local address', ['169.254.169.254']],
    ['a link-local IPv6 address', ['fe80::1']],
    ['a multicast address', ['224.0.0.1']],
    ['an address of this host', ['192.0.2.7']],
    ['the network of this host', ['192.0.2.0/24']],
    ['all IPv4 addresses', ['0.0.0.0/0']],
    ['all IPv6 addresses', ['::/0']],
    ['half of all IPv4 addresses', ['128.0.0.0/1']],
    ['an eighth of all IPv4 addresses', ['64.0.0.0/3']],
    ['an address from the range for service names', ['100.64.0.9']],
    ['a network that contains the range for service names', ['100.0.0.0/8']],
    ['the address of a controller', ['198.51.100.9']],
    ['the network of a controller', ['198.51.0.0/16']],
    ['the name of a controller', [CONTROLLER_NAME]],
    ['the name of this host', ['localhost']],
    ['every name', ['*']],
  ])('%s', async (_what, addresses) => {
    await withAddress('192.0.2.7/24')
    const stage = await running(hosted)
    await withMembers(stage, addresses.includes(CONTROLLER_NAME) ? [CONTROLLER_NAME] : [])
    stage.controller.change(taking(addresses))
    await eventually(() => stage.network.logged('service not intercepted').length).toBe(1)
    expect(stage.network.logged('service intercepted')).toEqual([])
    expect(routes()).toEqual(['100.64.0.0/10'])
  })

  test('an address of this host, even if the same service intercepts another address', async () => {
    const stage = await running(taking(['10.9.9.9', '127.0.0.1', '0.0.0.0/0', 'localhost']))
    await eventually(() => stage.network.logged('service intercepted').length).toBe(1)
    expect(routes()).toEqual(['10.9.9.9', '100.64.0.0/10'])
    const socket = connect(80, '127.0.0.1')
    const [error] = (await once(socket, 'error')) as [{ readonly code: string }]
    expect(error.code).toBe('ECONNREFUSED')
  })

  test('more ports than a service may have', async () => {
    const stage = await running(taking(['10.9.0.0/16'], 9000))
    const refused = () => stage.network.logged('service not intercepted')
    await eventually(() => refused().length).toBe(1)
    expect(refused()[0]?.fields['reason']).toContain('more than 1024 ports')
    expect(routes()).toEqual(['100.64.0.0/10'])
  })

  test('a name that matches its wildcard if the name is that of a controller, or if another service lists it explicitly', async () => {
    const stage = await running(hosted)
    await withMembers(stage, [CONTROLLER_NAME])
    const other = {
      protocols: ['tcp'],
      addresses: ['db.corp.example'],
      portRanges: [{ low: 80, high: 80 }],
    }
    stage.controller.change([
      ...taking(['*.corp.example']),
      ...serviceOf('s2', { 'intercept.v1': other }, ['Dial']),
    ])
    await eventually(() => stage.network.logged('service intercepted').length).toBe(2)
    const resolver = new Resolver({ timeout: 5000, tries: 1 })
    resolver.setServers(['127.0.0.1:5353'])
    await expect(resolver.resolve4(CONTROLLER_NAME)).rejects.toThrow('EREFUSED')
    expect(await resolver.resolve4('www.corp.example')).toHaveLength(1)
    const [address = ''] = await resolver.resolve4('db.corp.example')
    const socket = connect(80, address)
    socket.on('error', () => undefined)
    closing.push(() => void socket.destroy())
    await eventually(() => stage.controller.asked.length).toBe(1)
    expect(stage.controller.asked[0]?.serviceName).toBe('name of s2')
  })
})

test('names that match a wildcard do not use up the ports of another service', async () => {
  const both = { protocols: ['tcp'], portRanges: [{ low: 1, high: 1000 }] }
  const wild = { 'intercept.v1': { ...both, addresses: ['*.example'] } }
  const stage = await running([...hosted, ...serviceOf('s1', wild, ['Dial'])])
  await eventually(() => stage.network.logged('service intercepted').length).toBe(1)
  const resolver = new Resolver({ timeout: 20_000, tries: 1 })
  resolver.setServers(['127.0.0.1:5353'])
  for (const at of [1, 2, 3, 4]) {
    expect(await resolver.resolve4(`n${at}.example`)).toHaveLength(1)
  }
  await expect(resolver.resolve4('n5.example')).rejects.toThrow('ESERVFAIL')
  const other = { ...both, addresses: ['10.9.9.9'] }
  stage.controller.change(serviceOf('s2', { 'intercept.v1': other }, ['Dial']))
  await eventually(() => stage.network.logged('service intercepted').length).toBe(2)
  expect(stage.network.logged('service not intercepted')).toEqual([])
  expect(stage.network.logged('service intercepted no more')).toEqual([])
})

test.runIf(hasNft())(
  'a listening port to which many ports are redirected serves only redirected connections',
  async () => {
    const stage = await running([...hosted, ...taking(['10.9.9.9'], 9000)])
    await eventually(() => stage.network.logged('service intercepted').length).toBe(1)
    const rules = execFileSync('nft', ['list', 'ruleset']).toString()
    const port = Number(/dnat to tcp dport map @ports:([0-9]+)/.exec(rules)?.[1])
    for (const host of ['127.0.0.1', '10.9.9.9']) {
      const socket = connect(port, host)
      socket.on('error', () => undefined)
      await new Promise((done) => socket.once('close', done))
    }
    expect(stage.controller.asked).toEqual([])
  },
)

describe('A host other than the tunnel’s', () => {
  /**
   * Returns a function that runs a program on a neighboring host, 192.0.2.1, which sends all
   * traffic to this host, 192.0.2.2.
   */
  async function otherHost(): Promise<(code: string) => Promise<string>> {
    const held = spawn('unshare', ['--net', 'sleep', '1000'], { stdio: 'ignore' })
    closing.push(() => void held.kill('SIGKILL'))
    await once(held, 'spawn')
    const pid = String(held.pid)
    const own = execFileSync('readlink', ['/proc/self/ns/net']).toString()
    const theirs = () => execFileSync('readlink', [`/proc/${pid}/ns/net`]).toString()
    await eventually(theirs).not.toBe(own)
    ip(`link add here type veth peer name there netns ${pid}`)
    closing.push(() => void ip('link del here'))
    ip('address add 192.0.2.2/24 dev here')
    ip('link set here up')
    const at = async (...args: readonly string[]): Promise<string> => {
      const { stdout } = await execute('nsenter', ['--net', '--target', pid, ...args])
      return stdout.trim()
    }
    for (const command of [
      'address add 192.0.2.1/24 dev there',
      'link set there up',
      'route add default via 192.0.2.2',
    ]) {
      await at('ip', ...command.split(' '))
    }
    return (code) => at(process.execPath, '--eval', code)
  }

  async function reached(more: string): Promise<{
    readonly connected: string
    readonly resolved: string
    readonly asked: number
  }> {
    const target = await echoServer()
    closing.push(target.close)
    const host = { protocol: 'tcp', address: '127.0.0.1', port: target.port }
    const intercept = {
      protocols: ['tcp'],
      addresses: ['10.9.0.0/16'],
      portRanges: [{ low: 80, high: 80 }],
    }
    const at = await otherHost()
    const stage = await TunnelStage.create(
      serviceOf('s1', { 'host.v1': host, 'intercept.v1': intercept }, ['Bind', 'Dial']),
      `{mode: tproxy, resolver: "udp://192.0.2.2:5353"${more}}`,
    )
    closing.push(() => stage.close())
    await stage.controller.terminator('s1')
    await eventually(() => stage.network.logged('service intercepted').length).toBe(1)
    const ask = `const socket = net.connect(80, '10.9.1.1', () => socket.write('hello'))
      socket.setTimeout(3000, () => socket.destroy())
      socket.on('data', (read) => { console.log('read ' + read); socket.destroy() })
      socket.on('error', (error) => console.log(error.code))`
    const connected = await at(`const net = require('net'); ${ask}`)
    const resolve = `const resolver = new dns.Resolver({ timeout: 500, tries: 1 })
      resolver.setServers(['192.0.2.2:5353'])
      resolver.resolve4('a.example', (error, found) => console.log(error?.code ?? found))`
    const resolved = await at(`const dns = require('dns'); ${resolve}`)
    return { connected, resolved, asked: stage.controller.asked.length }
  }

  test('cannot use a service, and gets no response from the name server', async () => {
    const seen = await reached('')
    expect(seen).toEqual({ connected: 'ECONNRESET', resolved: 'ETIMEOUT', asked: 0 })
  })

  test('can use a service and gets a response from the name server if the option lanIf names its network', async () => {
    const seen = await reached(', lanIf: here')
    expect(seen).toMatchObject({ connected: 'read hello', resolved: 'EREFUSED' })
  })
})

test('the tunnel removes the route of a service together with the service', async () => {
  const { controller, network } = await running(taking(['10.9.9.9', 'fd77::/64']))
  await eventually(() => network.logged('service intercepted').length).toBe(1)
  await eventually(routes).toEqual(['10.9.9.9', '100.64.0.0/10', 'fd77::/64'])
  controller.change([member('Dial', 's1', false)])
  await eventually(routes).toEqual(['100.64.0.0/10'])
})

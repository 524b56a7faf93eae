import { createSocket, type Socket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { afterEach, describe, expect, test } from 'vitest'

import { seededRandom } from '../../../src/lib/random.ts'
import { readDnsQuery } from '../../../src/overlay/intercept/dns-message.ts'
import { DnsUpstream, type UpstreamMode } from '../../../src/overlay/intercept/dns-upstream.ts'
import { NameServer, type ResolvedName } from '../../../src/overlay/intercept/name-server.ts'
import { nameServer } from '../../support/name-server.ts'
import { eventually } from '../support.ts'
import { dnsQuery } from './support.ts'

// Goal: the name server answers names of services with their addresses, and other names with the
// answer of another name server or a refusal.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function serving(
  resolve: (name: string) => Promise<ResolvedName>,
  upstream: DnsUpstream | null = null,
  unanswerable: 'timeout' | 'servfail' | 'refused' = 'refused',
): Promise<{ readonly resolver: Resolver; readonly server: NameServer }> {
  const log = () => undefined
  const server = new NameServer({
    bind: { host: '127.0.0.1', port: 0 },
    isClient: (address) => address === '127.0.0.1',
    resolve,
    upstream,
    unanswerable,
    log: { info: log, warn: log, error: log },
  })
  await server.start()
  closing.push(() => server.stop())
  const resolver = new Resolver({ timeout: 3000, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.port}`])
  return { resolver, server }
}

const unclaimed = async (): Promise<ResolvedName> => 'unclaimed'

async function upstreamOf(count: number, mode: UpstreamMode) {
  const servers = await Promise.all(
    Array.from({ length: count }, async (_, at) => nameServer([`203.0.113.${at + 1}`])),
  )
  closing.push(...servers.map(({ close }) => close))
  const places = servers.map(({ at }) => ({ host: '127.0.0.1', port: Number(at.split(':')[1]) }))
  return { upstream: new DnsUpstream(places, mode, seededRandom(1)), servers }
}

describe('The DNS server of a tunneler', () => {
  test('resolves the name of a service in capital and small letters', async () => {
    const asked: string[] = []
    const { resolver } = await serving(async (name) => {
      asked.push(name)
      return { address: '100.64.0.2' }
    })
    expect(await resolver.resolve4('Web.Example', { ttl: true })).toEqual([
      { address: '100.64.0.2', ttl: 60 },
    ])
    await expect(resolver.resolve6('web.example')).rejects.toThrow('ENODATA')
    await expect(resolver.resolveMx('web.example')).rejects.toThrow('ENODATA')
    expect(new Set(asked)).toEqual(new Set(['web.example']))
  })

  test.each([
    ['refused', 'EREFUSED'],
    ['servfail', 'ESERVFAIL'],
    ['timeout', 'ETIMEOUT'],
  ] as const)(
    'answers queries for other names according to dnsUnanswerable: %s',
    async (unanswerable, code) => {
      const { resolver } = await serving(unclaimed, null, unanswerable)
      await expect(resolver.resolve4('www.example')).rejects.toThrow(code)
    },
  )

  test('answers SERVFAIL if it currently has no address for a service name', async () => {
    const { resolver } = await serving(async () => 'unavailable')
    await expect(resolver.resolve4('web.example')).rejects.toThrow('ESERVFAIL')
  })

  test('forwards queries for names that are not service names to upstream DNS servers', async () => {
    const { upstream } = await upstreamOf(1, 'serial')
    const { resolver } = await serving(unclaimed, upstream)
    expect(await resolver.resolve4('www.example')).toEqual(['203.0.113.1'])
  })

  test.each<[UpstreamMode, readonly string[]]>([
    ['serial', ['203.0.113.1', '203.0.113.2', '203.0.113.2']],
    ['failover', ['203.0.113.1', '203.0.113.2', '203.0.113.2']],
  ])(
    'queries the first upstream server, and the next one once the first has stopped, in the mode %s',
    async (mode, expected) => {
      const { upstream, servers } = await upstreamOf(2, mode)
      const { resolver } = await serving(unclaimed, upstream)
      const found = [await resolver.resolve4('www.example')]
      servers[0]?.close()
      closing.splice(closing.indexOf(servers[0]?.close ?? (() => undefined)), 1)
      found.push(await resolver.resolve4('www.example'), await resolver.resolve4('www.example'))
      expect(found.flat()).toEqual(expected)
    },
  )

  test('returns the response of one of the upstream servers in the modes parallel and random', async () => {
    const all = ['203.0.113.1', '203.0.113.2', '203.0.113.3']
    for (const mode of ['parallel', 'random'] as const) {
      const { upstream } = await upstreamOf(3, mode)
      const { resolver } = await serving(unclaimed, upstream)
      expect(all).toContain((await resolver.resolve4('www.example'))[0])
    }
  })

  test.each<[string, (query: Buffer) => Buffer]>([
    ['that is too short', (query) => query.subarray(0, 11)],
    ['that is truncated within its name', (query) => query.subarray(0, 16)],
    ['without a query type', (query) => query.subarray(0, query.length - 4)],
    ['that is a response', (query) => Buffer.from(query).fill(0x81, 2, 3)],
    ['with another opcode', (query) => Buffer.from(query).fill(0x29, 2, 3)],
    ['with two questions', (query) => Buffer.from(query).fill(2, 5, 6)],
    ['with a pointer in its name', (query) => Buffer.from(query).fill(0xc0, 12, 13)],
    ['with a name that is too long', () => dnsQuery(1, Array(60).fill('abcd').join('.'))],
    ['that is larger than the maximum size', (query) => Buffer.concat([query, Buffer.alloc(1300)])],
  ])('drops a message %s', async (_what, changed) => {
    const { server } = await serving(async () => ({ address: '100.64.0.2' }))
    const client: Socket = createSocket('udp4')
    closing.push(() => {
      client.close()
    })
    client.send(changed(dnsQuery(1, 'web.example')), server.port, '127.0.0.1')
    await eventually(() => server.counts).toEqual({ queries: 0, dropped: 1 })
  })

  test('does not treat a DNS label that contains a dot as part of a service name', () => {
    const query = dnsQuery(1, 'web-example')
    query[16] = 0x2e
    expect(readDnsQuery(query)?.name).toBeNull()
    expect(readDnsQuery(dnsQuery(1, 'web-example'))?.name).toBe('web-example')
  })
})

import { createSocket, type Socket } from 'node:dgram'
import { afterEach, expect, test } from 'vitest'

import { systemClock } from '../../src/lib/clock.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { DnsUpstream } from '../../src/overlay/intercept/dns-upstream.ts'
import { readDnsQuery } from '../../src/overlay/intercept/dns-message.ts'
import { NameServer } from '../../src/overlay/intercept/name-server.ts'
import { ServiceAddressAllocator } from '../../src/overlay/intercept/service-address-allocator.ts'
import { interceptLimits } from '../../src/overlay/intercept/limits.ts'
import { eventually } from '../router/support.ts'
import { dnsQuery } from '../router/intercept/support.ts'
import { parseCidr } from '../../src/lib/text/networks.ts'

// The attack: the name server of a tunnel receives queries from other hosts, is flooded, receives
// false responses from attackers who guess its queries, or must handle so many names that it has no
// addresses or memory left.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function bound(onMessage: (body: Buffer, socket: Socket, port: number) => void) {
  const socket = createSocket('udp4')
  socket.on('message', (body, { port }) => onMessage(body, socket, port))
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done))
  closing.push(() => {
    socket.close()
  })
  return socket
}

async function serving(isClient: boolean, upstream: DnsUpstream | null): Promise<NameServer> {
  const log = () => undefined
  const server = new NameServer({
    bind: { host: '127.0.0.1', port: 0 },
    isClient: () => isClient,
    resolve: async () => (upstream === null ? { address: '100.64.0.2' } : 'unclaimed'),
    upstream,
    unanswerable: 'refused',
    log: { info: log, warn: log, error: log },
  })
  await server.start()
  closing.push(() => server.stop())
  return server
}

const answerTo = (query: Buffer, address: string): Buffer => {
  const answer = Buffer.from(query)
  answer.writeUInt16BE(0x8180, 2)
  answer.writeUInt16BE(1, 6)
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, ...address.split('.').map(Number)]
  return Buffer.concat([answer, Buffer.from(record)])
}

test('a host outside of the listener’s networks gets no response to a DNS query', async () => {
  const server = await serving(false, null)
  const heard: Buffer[] = []
  const client = await bound((body) => heard.push(body))
  client.send(dnsQuery(1, 'web.example'), server.port, '127.0.0.1')
  await eventually(() => server.counts.dropped).toBe(1)
  expect(server.counts.queries).toBe(0)
  expect(heard).toEqual([])
})

test.each<[string, (query: Buffer) => Buffer]>([
  [
    'with another query id',
    (query) => {
      const other = Buffer.from(query)
      other.writeUInt16BE((query.readUInt16BE(0) + 1) & 0xffff, 0)
      return answerTo(other, '203.0.113.66')
    },
  ],
  [
    'to another question',
    (query) => answerTo(dnsQuery(query.readUInt16BE(0), 'bad.example'), '203.0.113.66'),
  ],
  ['that is the query itself', (query) => query],
])('a DNS response %s is not accepted from an upstream name server', async (_what, lie) => {
  const upstream = await bound((query, socket, port) => {
    socket.send(lie(query), port, '127.0.0.1')
    socket.send(answerTo(query, '203.0.113.1'), port, '127.0.0.1')
  })
  const servers = [{ host: '127.0.0.1', port: upstream.address().port }]
  const asked = new DnsUpstream(servers, 'serial', seededRandom(1))
  const query = readDnsQuery(dnsQuery(7, 'www.example'))
  if (query === null) throw new Error('no query')
  expect((await asked.ask(query))?.subarray(-4).join('.')).toBe('203.0.113.1')
})

test('forwarded DNS queries have varying IDs and source ports', async () => {
  const seen: string[] = []
  const upstream = await bound((query, socket, port) => {
    seen.push(`${query.readUInt16BE(0)} ${port}`)
    socket.send(answerTo(query, '203.0.113.1'), port, '127.0.0.1')
  })
  const servers = [{ host: '127.0.0.1', port: upstream.address().port }]
  const asked = new DnsUpstream(servers, 'serial', seededRandom(1))
  const query = readDnsQuery(dnsQuery(7, 'www.example'))
  if (query === null) throw new Error('no query')
  for (let at = 0; at < 20; at += 1) await asked.ask(query)
  expect(new Set(seen.map((one) => one.split(' ')[0])).size).toBeGreaterThan(10)
  expect(new Set(seen.map((one) => one.split(' ')[1])).size).toBeGreaterThan(10)
})

test('a flood of DNS queries causes only a limited number of forwarded queries at a time', async () => {
  const upstream = await bound(() => undefined)
  const servers = [{ host: '127.0.0.1', port: upstream.address().port }]
  const all = new DnsUpstream(servers, 'serial', seededRandom(1))
  const query = readDnsQuery(dnsQuery(7, 'www.example'))
  if (query === null) throw new Error('no query')
  const { upstreamQueriesMax } = interceptLimits
  let isOneOver = false
  const asked = Array.from({ length: upstreamQueriesMax }, async () => {
    await all.ask(query)
    isOneOver = true
  })
  // A query above the limit is refused immediately, and does not wait like the others.
  expect(await all.ask(query)).toBeNull()
  expect(isOneOver).toBe(false)
  await Promise.all(asked)
})

test('DNS queries for many names that match a wildcard exhaust neither addresses nor memory', () => {
  const network = parseCidr('100.64.0.1/10')
  if (network === null) throw new Error('no network')
  const names = new ServiceAddressAllocator(network, systemClock, () => false)
  const { serviceNamesMax } = interceptLimits
  const given = Array.from({ length: serviceNamesMax + 10 }, (_, at) => names.use(`n${at}.example`))
  expect(given.filter((address) => address !== null)).toHaveLength(serviceNamesMax)
  expect(names.names.size).toBe(serviceNamesMax)
  expect(names.use('n0.example')?.text).toBe('100.64.0.2')
})

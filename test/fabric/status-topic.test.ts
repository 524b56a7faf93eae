import { expect, test } from 'vitest'

import type { RouterStatus as RouterStatusMessage } from '../../proto/gen/soft_pb.ts'
import { noRouterStatuses, type RouterStatus } from '../../src/ports/router-status.ts'
import { softTopics } from '../../src/ports/soft-topics.ts'
import { routerStatusMessage, RouterStatusTopic } from '../../src/fabric/router-status-topic.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { LocalTopic } from '../api/support/local-topic.ts'

const version = { version: 'v2.0.3', revision: '', buildDate: '', os: '', arch: '' }
const lan = {
  name: 'eth0',
  hardwareAddress: '02:00:00:00:00:01',
  mtu: 1500,
  index: 2,
  flags: 51,
  addresses: ['10.0.0.2/24'],
}
const statusOf = (hostname: string): RouterStatus => ({
  hostname,
  protocols: {},
  version,
  capabilities: [1, 62],
  linkListeners: [{ address: 'tls:edge:6000', protocol: 'tls' }],
  interfaces: [lan],
})

/** A status topic for which the test publishes in place of other controllers. */
function heard() {
  const clock = new ManualClock()
  const topic = new LocalTopic<RouterStatusMessage>('ctrl2')
  const board = new RouterStatusTopic('ctrl2', topic, clock)
  const say = (
    owner: string,
    routerId: string,
    status: RouterStatus | undefined,
    connectedAtMs = clock.nowMs(),
  ): void => {
    const message = status === undefined ? status : routerStatusMessage(status, connectedAtMs)
    topic.hear(owner, routerId, message)
  }
  return { board, say, clock, own: topic.own }
}

test('a router is shown as online while any controller has a channel to it', () => {
  const { board, say } = heard()
  expect(board.of('er1')).toBeNull()
  board.publish('er1', statusOf(''))
  say('ctrl1', 'er1', statusOf('edge'))
  board.withdraw('er1')
  expect(board.of('er1')).toEqual(statusOf('edge'))
  say('ctrl1', 'er1', undefined)
  expect(board.of('er1')).toBeNull()
  say('ctrl9', 'er1', undefined)
  expect(board.of('er1')).toBeNull()
})

test('if a router has several statuses, all controllers show the same one: the first with a host name, in the order of controller IDs', () => {
  const { board, say } = heard()
  board.publish('er1', statusOf('b'))
  say('ctrl1', 'er1', statusOf(''))
  expect(board.of('er1')?.hostname).toBe('b')
  say('ctrl1', 'er1', statusOf('a'))
  expect(board.of('er1')?.hostname).toBe('a')
  expect(noRouterStatuses.of('er1')).toBeNull()
})

test('the status that a router reports is limited in size when it is published and when it is received', () => {
  const { board, say, own } = heard()
  const { encode, decode } = softTopics.routers
  const long = 'x'.repeat(10_000)
  const protocols = Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`p${at}`, long]))
  const capabilities = Array.from({ length: 99 }, (_, bit) => bit)
  const many = <T>(one: T): T[] => Array.from({ length: 99 }, () => one)
  const status: RouterStatus = {
    hostname: long,
    protocols,
    version: { ...version, os: long },
    capabilities,
    linkListeners: many({ address: long, protocol: long }),
    interfaces: many({ ...lan, name: long, hardwareAddress: long, addresses: many(long) }),
  }
  board.publish('er1', status)
  const [published] = own.values()
  if (published === undefined) throw new Error('nothing was published')
  const bytes = encode(published)
  expect(bytes.length).toBeLessThan(24 * 1024)
  expect(decode(bytes)).toEqual(published)
  expect(() => decode(Uint8Array.of(0xff))).toThrow()
  say('ctrl1', 'er2', status)
  const shown = board.of('er2')
  expect(shown?.hostname).toHaveLength(255)
  expect(Object.keys(shown?.protocols ?? {})).toHaveLength(16)
  expect(shown?.version.os).toHaveLength(255)
  expect(shown?.capabilities).toHaveLength(64)
  expect(shown?.linkListeners).toHaveLength(8)
  expect(shown?.interfaces).toHaveLength(16)
  expect(shown?.interfaces[0]?.addresses).toHaveLength(8)
})

test('a router’s online-since time is when its oldest channel opened, and its offline-since time when its last channel closed', () => {
  const { board, say, clock } = heard()
  const startMs = clock.nowMs()
  expect(board.presenceOf('er1')).toEqual({ connectedMs: null, returnedMs: null, lostMs: null })
  say('ctrl1', 'er1', statusOf('edge'), startMs - 5000)
  clock.advance(1000)
  board.publish('er1', statusOf('edge'))
  clock.advance(1000)
  board.publish('er1', statusOf('edge, again'))
  const online = { returnedMs: null, lostMs: null }
  expect(board.presenceOf('er1')).toEqual({ connectedMs: startMs - 5000, ...online })
  say('ctrl1', 'er1', undefined)
  expect(board.presenceOf('er1')).toEqual({ connectedMs: startMs + 1000, ...online })
  clock.advance(1000)
  board.withdraw('er1')
  const offline = { connectedMs: null, returnedMs: null, lostMs: startMs + 3000 }
  expect(board.presenceOf('er1')).toEqual(offline)
  clock.advance(1000)
  say('ctrl1', 'er1', statusOf('edge'))
  const returnedMs = startMs + 4000
  expect(board.presenceOf('er1')).toEqual({ connectedMs: returnedMs, returnedMs, lostMs: null })
})

test('a controller whose clock is ahead does not make the online-since time of a router later', () => {
  const { board, say, clock } = heard()
  say('ctrl1', 'er1', statusOf('edge'), clock.nowMs() + 60_000)
  expect(board.presenceOf('er1').connectedMs).toBe(clock.nowMs())
})

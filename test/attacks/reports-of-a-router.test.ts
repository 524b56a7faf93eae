import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { MetricsSchema, RouterLinksSchema } from '../../proto/gen/router_pb.ts'
import { DialCounter } from '../../src/events/sources/dial-counter.ts'
import { EventBus } from '../../src/events/event-bus.ts'
import { eventLimits } from '../../src/events/limits.ts'
import { ObservationEvents } from '../../src/events/sources/observation-events.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLinkHandler } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { perRouterRateLimitedLogger } from '../../src/fabric/rate-limited-router-log.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: a router's report crashes the controller that shows it to others, fills its memory,
// or fills its log.

const MIB = 1024 * 1024

class Reports {
  readonly stage = new RouterStage()
  readonly lines: string[] = []
  readonly #bus = new EventBus({
    selfId: 'ctrl1',
    generation: 1,
    startedAtMs: 1,
    limits: eventLimits,
    appliedIndex: () => 7,
  })
  readonly #live = new ObservationEvents({
    bus: this.#bus,
    clock: systemClock,
    dials: new DialCounter(systemClock.nowMs()),
    isConnected: () => true,
    state: { findAll: () => [] },
  })

  constructor() {
    // Simulates a reader of events.
    this.#bus.want(['metrics'])
    const warn = (_fields: unknown, message: string): number => this.lines.push(message)
    const table = new LinkTable({
      owner: 'ctrl1',
      isBarred: () => false,
      isConnected: () => true,
      sendGone: () => undefined,
      onGone: () => undefined,
      onSeen: (link, type) => this.#live.publishFact({ kind: 'link', type, link }),
    })
    this.stage.channels.add(
      createLinkHandler({
        table,
        isCertificateOf: () => false,
        onOtherFault: () => undefined,
        log: perRouterRateLimitedLogger({ info: () => undefined, warn }, systemClock),
        onMetrics: (metrics) => this.#live.publishFact({ kind: 'routerMetrics', metrics }),
      }),
    )
  }

  [Symbol.dispose](): void {
    this.stage.channels.stop()
  }

  /** Texts of all events so far, and the size that the event buffer counts for them. */
  async told(): Promise<{ readonly texts: readonly string[]; readonly weight: number }> {
    await settle()
    const { ring } = this.#bus
    const texts = Array.from({ length: ring.end }, (_, at) => ring.at(at)?.text ?? '')
    return { texts, weight: ring.weight }
  }
}

function say(pipe: Pipe, metrics: Parameters<typeof create<typeof MetricsSchema>>[1]): void {
  pipe.say({ contentType: 1007, body: toBinary(MetricsSchema, create(MetricsSchema, metrics)) })
}

test.each([2n ** 60n, -(2n ** 60n), 0n])(
  'a router’s metrics with the invalid time %f s are published with a time that every subscriber can parse',
  async (seconds) => {
    using reports = new Reports()
    const pipe = await reports.stage.dial('er1')
    say(pipe, { timestamp: { seconds, nanos: 0 }, intValues: { figure: 1n } })
    const { texts } = await reports.told()
    expect(texts).toHaveLength(1)
    const { timestamp } = JSON.parse(texts[0] ?? '') as { timestamp: string }
    expect(Math.abs(Date.parse(timestamp) - Date.now())).toBeLessThan(3_600_000)
  },
)

test('the tags in a router’s metrics count toward the size of the event buffer', async () => {
  using reports = new Reports()
  const pipe = await reports.stage.dial('er1')
  const tags = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`${at}`, 'x'.repeat(255)]))
  say(pipe, { timestamp: { seconds: 1n, nanos: 0 }, tags, intValues: { figure: 1n } })
  const { texts, weight } = await reports.told()
  expect(texts.join('').length).toBeGreaterThan(8000)
  expect(weight).toBeGreaterThan(8000)
})

test('the texts in a router’s link report count toward the size of the event buffer', async () => {
  using reports = new Reports()
  const pipe = await reports.stage.dial('er1')
  const text = 'x'.repeat(255)
  const conns = Array.from({ length: 16 }, () => ({
    type: text,
    localAddr: text,
    remoteAddr: text,
  }))
  const links = [{ id: 'l1', destRouterId: 'er2', connState: { conns } }]
  const body = toBinary(RouterLinksSchema, create(RouterLinksSchema, { links }))
  pipe.say({ contentType: 1035, body })
  const { texts, weight } = await reports.told()
  expect(texts.join('').length).toBeGreaterThan(12_000)
  expect(weight).toBeGreaterThan(12_000)
})

test('storing the beginning of a router’s long string does not keep the rest of the string in memory', async () => {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  const heldMiB = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return (heapUsed + external) / MIB
  }
  const table = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: () => true,
    sendGone: () => undefined,
    onGone: () => undefined,
  })
  const beforeMiB = heldMiB()
  for (let at = 0; at < 64; at += 1) {
    const link = { id: `l${at}`, destRouterId: 'er2', dialAddress: 'x'.repeat(3 * MIB) }
    const body = toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: [link] }))
    const [{ dialAddress } = link] = fromBinary(RouterLinksSchema, body).links
    table.report('er1', { ...link, dialAddress, protocol: '', iteration: 1, connections: [] })
  }
  expect(table.list()).toHaveLength(64)
  // Memory that was allocated while decoding is released gradually; the stored value stays after
  // any number of collections.
  for (let round = 0; round < 50 && heldMiB() - beforeMiB >= 96; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(heldMiB() - beforeMiB).toBeLessThan(96)
})

test('repeated protocol errors of a router are logged at a limited rate', async () => {
  using reports = new Reports()
  const pipe = await reports.stage.dial('er1')
  const beyond = routerLimits.linksPerRouterMax + 1
  const list = Array.from({ length: beyond }, (_, at) => ({ id: `l${at}`, destRouterId: 'er2' }))
  const all = toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: list }))
  pipe.say({ contentType: 1035, body: all })
  const one = create(RouterLinksSchema, { links: [{ id: 'one more', destRouterId: 'er2' }] })
  for (let times = 0; times < 100; times += 1) {
    pipe.say({ contentType: 1035, body: toBinary(RouterLinksSchema, one) })
  }
  pipe.say({ contentType: 1, sequence: 9 })
  await eventually(() => expect(pipe.ofType(2)).toHaveLength(2))
  expect(reports.lines.length).toBeGreaterThan(0)
  expect(reports.lines.length).toBeLessThan(routerLimits.routerWarningsBurst + 5)
})

import { beforeEach, describe, expect, test } from 'vitest'

import type { IdentityTrace } from '../../proto/gen/soft_pb.ts'
import { TracedIdentities, traceLimits } from '../../src/fabric/circuits/traced-identities.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { ManualClock } from '../api/support/manual-time.ts'

// Goal: if one controller is requested to trace an identity, all controllers trace it, until one of
// them ends the trace or it expires.

const ids = ['ctrl1', 'ctrl2', 'ctrl3']
let clocks: ManualClock[]
let topics: LocalTopic<IdentityTrace>[]
let traces: TracedIdentities[]

beforeEach(() => {
  clocks = ids.map(() => new ManualClock())
  topics = ids.map((id) => new LocalTopic<IdentityTrace>(id))
  traces = ids.map((selfId, at) => {
    const [topic, clock] = [topics[at], clocks[at]]
    if (topic === undefined || clock === undefined) throw new Error('no such controller')
    return new TracedIdentities({ selfId, topic, clock })
  })
})

/** Delivers the publications and removals of each controller to the others. */
function carry(key = 'alice'): void {
  for (const [from, owner] of ids.entries()) {
    for (const [to, topic] of topics.entries()) {
      if (from !== to) topic.hear(owner, key, topics[from]?.own.get(key))
    }
  }
}

function begin(at: number, traceId: string, ms = 60_000, key = 'alice'): boolean | undefined {
  const untilMs = (clocks[at]?.nowMs() ?? 0) + ms
  return traces[at]?.begin(key, { traceId, channels: 3, untilMs })
}

const seen = (key = 'alice'): (string | undefined)[] => traces.map((each) => each.of(key)?.traceId)

describe('a trace of an identity', () => {
  test('is known to all controllers, and ends on all of them when it expires on the controller that started it', () => {
    begin(0, 'mine')
    carry()
    expect(seen()).toEqual(['mine', 'mine', 'mine'])
    // The clocks of other controllers have no influence on the trace.
    clocks[1]?.advance(3_600_000)
    expect(seen()).toEqual(['mine', 'mine', 'mine'])
    clocks[0]?.advance(60_000)
    expect(seen()[0]).toBe(undefined)
    traces[0]?.sweep()
    carry()
    expect(seen()).toEqual([undefined, undefined, undefined])
  })

  test('can be ended by any controller, and a new trace ends the previous one', () => {
    begin(0, 'first')
    carry()
    traces[1]?.end('alice')
    carry()
    expect(seen()).toEqual([undefined, undefined, undefined])
    begin(2, 'second')
    carry()
    expect(seen()).toEqual(['second', 'second', 'second'])
    begin(1, 'third')
    carry()
    expect(seen()).toEqual(['third', 'third', 'third'])
    traces[1]?.end('alice')
    carry()
    expect(seen()).toEqual([undefined, undefined, undefined])
  })

  test('ends if the controller that started it is gone', () => {
    begin(0, 'mine')
    carry()
    topics[1]?.lose('ctrl1')
    expect(seen()[1]).toBe(undefined)
  })

  test('counts toward the limit of a thousand traces per controller: at the limit, the oldest trace ends', () => {
    for (let at = 0; at <= traceLimits.tracesMax; at += 1) begin(0, `${at}`, 60_000, `i${at}`)
    expect(topics[0]?.own.size).toBe(traceLimits.tracesMax)
    expect(traces[0]?.of('i0')).toBe(null)
    expect(traces[0]?.of('i1')?.traceId).toBe('1')
  })

  test('is refused if it cannot be published', () => {
    const [topic] = topics
    if (topic !== undefined) topic.isFull = true
    expect(begin(0, 'mine')).toBe(false)
    expect(seen()[0]).toBe(undefined)
  })
})

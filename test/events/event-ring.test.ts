import { describe, expect, test } from 'vitest'

import { EventBus } from '../../src/events/event-bus.ts'
import { EntryEvents } from '../../src/events/entry-events.ts'
import type { NewEvent } from '../../src/events/event-field.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import type { EventNamespace } from '../../src/lib/event-namespaces.ts'
import {
  comparePositions,
  type EventFilter,
  parsePosition,
  positionText,
} from '../../src/ports/events.ts'
import { emitEntry } from './emit-entry.ts'

function busOf(limits: { eventsKeptMax: number; eventBytesKeptMax: number }): EventBus {
  return new EventBus({
    selfId: 'ctrl1',
    generation: 2,
    appliedIndex: () => 5,
    startedAtMs: 1000,
    limits,
  })
}

function event(weight = 1): NewEvent {
  return { namespace: 'router', atMs: 1, weight, fields: () => ({ weight }) }
}

/** Emits the events of a log entry that creates this many services: two events for each. */
function created(bus: EventBus, index: number, services: number): void {
  const changes = Array.from({ length: services }, (_, number) => {
    const id = `s${index}-${number}`
    const after: EntityRecord = { id, name: id, createdAt: 1, updatedAt: 1, revision: 1 }
    return { kind: 'service' as const, id, before: undefined, after }
  })
  const entry = { index, timeMs: 1, audit: null, changes, policyIds: new Map<string, string>() }
  bus.emitEntry(new EntryEvents(bus, entry))
}

function filterOf(...names: readonly EventNamespace[]): EventFilter {
  return { namespaces: new Set(names), metrics: null, sources: null, entityTypes: null }
}

const at = (text: string) => parsePosition(text) ?? { generation: 0, index: 0, sequence: 0 }

describe('The event ring (a buffer of the latest events)', () => {
  test('keeps a limited number of events, and reports to a reader if unread events were evicted', () => {
    const full = busOf({ eventsKeptMax: 3, eventBytesKeptMax: 100 })
    emitEntry(full, 6, [event(), event(), event(), event(), event()])
    expect([full.ring.first, full.ring.end]).toEqual([2, 5])
    expect(full.ring.after(at('2:6:2'))).toEqual({ number: 2, isGap: false })
    expect(full.ring.after(at('2:6:1')).isGap).toBe(true)
    expect(full.ring.after(at('2:6:4'))).toEqual({ number: 4, isGap: false })
    expect(full.ring.after(at('2:9:0'))).toEqual({ number: 5, isGap: false })
  })

  test('keeps a limited total size, but always the newest event of any size', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    emitEntry(bus, 6, [event(60), event(60), event(500)])
    expect([bus.ring.first, bus.ring.end, bus.ring.weight]).toEqual([2, 3, 500])
  })

  test('reports a gap to every reader after the whole state was replaced', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    emitEntry(bus, 6, [event()])
    bus.noteGap()
    expect(bus.ring.after(at('2:4:1')).isGap).toBe(true)
    expect(bus.ring.at(0)).toBeUndefined()
  })
})

describe('Several events of one log entry that share one slot of the event ring', () => {
  const large = { eventsKeptMax: 1000, eventBytesKeptMax: 1_000_000 }

  test('have separate numbers and positions', () => {
    const bus = busOf(large)
    bus.emitLive(event())
    created(bus, 6, 2)
    bus.emitLive(event())
    expect([bus.ring.first, bus.ring.end]).toEqual([0, 6])
    const ids = [3, 0, 5, 1, 2, 4].map((number) => bus.ring.at(number)?.id)
    const live = (sequence: number): string => `2:5:${sequence}@ctrl1`
    expect(ids).toEqual(['2:6:3', live(1_000_001), live(1_000_002), '2:6:1', '2:6:2', '2:6:4'])
    expect(bus.ring.at(6)).toBeUndefined()
  })

  test('can be read from the one after the event that the reader read last', () => {
    const bus = busOf(large)
    for (const index of [6, 7, 8]) created(bus, index, 2)
    const after = (text: string): string | undefined =>
      bus.ring.at(bus.ring.after(at(text)).number)?.id
    expect(after('2:5:9')).toBe('2:6:1')
    expect(after('2:7:0')).toBe('2:7:1')
    expect(after('2:7:1')).toBe('2:7:2')
    expect(after('2:7:3')).toBe('2:7:4')
    expect(after('2:7:4')).toBe('2:8:1')
    expect(after('2:7:4000')).toBe('2:8:1')
    expect(after('2:8:4')).toBeUndefined()
  })

  test('are skipped together if a filter matches none of them, and filtered one by one otherwise', () => {
    const bus = busOf(large)
    created(bus, 6, 2)
    bus.emitLive(event())
    created(bus, 7, 1)
    expect(bus.ring.find(0, filterOf('router'))).toBe(4)
    expect(bus.ring.find(5, filterOf('router'))).toBe(7)
    expect(bus.ring.find(1, filterOf('entityChange'))).toBe(1)
    expect(bus.ring.find(4, filterOf('entityChange'))).toBe(5)
    const services = { ...filterOf('entityChange'), entityTypes: new Set(['identities']) }
    expect(bus.ring.find(0, services)).toBe(7)
  })

  test('are found by a filter that matches the namespace of only one of them', () => {
    const bus = busOf(large)
    const changes = (['session', 'apiSession'] as const).map((kind) => {
      const after: EntityRecord = { id: kind, createdAt: 1, updatedAt: 1, revision: 1 }
      return { kind, id: kind, before: undefined, after }
    })
    const entry = { index: 6, timeMs: 1, audit: null, changes, policyIds: new Map() }
    bus.emitEntry(new EntryEvents(bus, entry))
    const { ring } = bus
    const made = Array.from({ length: ring.end - ring.first }, (_, k) => ring.at(ring.first + k))
    const namespaces = [...new Set(made.flatMap((one) => one?.namespace ?? []))]
    expect(namespaces.toSorted()).toEqual([
      'apiSession',
      'authentication',
      'entityChange',
      'session',
    ])
    for (const one of namespaces) {
      const found = ring.find(ring.first, filterOf(one))
      expect(ring.at(found)?.namespace, one).toBe(one)
    }
  })

  test('are evicted together if the ring has too many events, and then no reader finds them', () => {
    const bus = busOf({ eventsKeptMax: 5, eventBytesKeptMax: 1_000_000 })
    for (const index of [6, 7, 8]) created(bus, index, 2)
    expect([bus.ring.first, bus.ring.end]).toEqual([8, 12])
    expect(bus.ring.find(3, filterOf('entityChange'))).toBe(3)
    expect(bus.ring.at(3)).toBeUndefined()
    expect(bus.ring.after(at('2:7:4'))).toEqual({ number: 8, isGap: false })
    expect(bus.ring.after(at('2:7:3')).isGap).toBe(true)
  })

  test('are counted with the size of the records that they reference', () => {
    const bus = busOf(large)
    created(bus, 6, 1)
    const one = bus.ring.weight
    expect(one).toBeGreaterThan(100)
    created(bus, 7, 3)
    expect(bus.ring.weight).toBe(4 * one)
  })
})

test('each event of a log entry with very many events gets its own slot of the event ring, so that the ring can evict only the oldest of them', () => {
  const bus = busOf({ eventsKeptMax: 1000, eventBytesKeptMax: 100_000 })
  created(bus, 6, 600)
  expect(bus.ring.end).toBe(1200)
  expect(bus.ring.end - bus.ring.first).toBeLessThanOrEqual(1000)
  expect(bus.ring.weight).toBeLessThanOrEqual(100_000)
  expect(bus.ring.at(1199)?.id).toBe('2:6:1200')
})

describe('A record in the event ring', () => {
  test('has an ID without the name of a controller if it comes from the log, and otherwise an ID with its controller’s name', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    emitEntry(bus, 6, [event(), event()])
    bus.emitLive(event())
    const ids = [0, 1, 2].map((number) => bus.ring.at(number)?.id)
    expect(ids).toEqual(['2:6:1', '2:6:2', '2:5:1000001@ctrl1'])
  })

  test('is serialized to JSON only once', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    let times = 0
    bus.emitLive({ ...event(), fields: () => ({ router_id: `r${(times += 1)}` }) })
    expect(bus.ring.at(0)?.text).toBe(bus.ring.at(0)?.text)
    expect(JSON.parse(bus.ring.at(0)?.text ?? '')).toEqual({
      namespace: 'router',
      event_src_id: 'ctrl1',
      timestamp: '1970-01-01T00:00:00.001Z',
      router_id: 'r1',
      event_id: '2:5:1000001@ctrl1',
    })
  })
})

test('the parser of log positions restores a position from its text, and rejects any other string', () => {
  expect(positionText(at('1:2:3'))).toBe('1:2:3')
  expect(at('1:2:3@ctrl1')).toEqual(at('1:2:3'))
  for (const text of ['', '1:2', '1:2:x', '1:2:3:4', '1:2:3@', `1:2:${'9'.repeat(17)}`]) {
    expect(parsePosition(text), text).toBeNull()
  }
  expect(comparePositions(at('1:9:9'), at('2:0:0'))).toBeLessThan(0)
  expect(comparePositions(at('1:2:9'), at('1:3:0'))).toBeLessThan(0)
})

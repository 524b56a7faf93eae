import { describe, expect, test } from 'vitest'

import { EventBus } from '../../src/events/event-bus.ts'
import type { NewEvent } from '../../src/events/field.ts'
import { comparePositions, parsePosition, positionText } from '../../src/ports/events.ts'

function busOf(limits: { eventsKeptMax: number; eventBytesKeptMax: number }): EventBus {
  return new EventBus({
    ...{ selfId: 'ctrl1', generation: 2, appliedIndex: () => 5, startedAtMs: 1000, limits },
  })
}

function event(weight = 1): NewEvent {
  return { namespace: 'router', atMs: 1, weight, fields: () => ({ weight }) }
}

const at = (text: string) => parsePosition(text) ?? { generation: 0, index: 0, sequence: 0 }

describe('The ring', () => {
  test('keeps so many events, and tells which are gone', () => {
    const full = busOf({ eventsKeptMax: 3, eventBytesKeptMax: 100 })
    full.emitEntry(6, [event(), event(), event(), event(), event()])
    expect([full.ring.first, full.ring.end]).toEqual([2, 5])
    expect(full.ring.after(at('2:6:2'))).toEqual({ number: 2, isGap: false })
    expect(full.ring.after(at('2:6:1')).isGap).toBe(true)
    expect(full.ring.after(at('2:6:4'))).toEqual({ number: 4, isGap: false })
    expect(full.ring.after(at('2:9:0'))).toEqual({ number: 5, isGap: false })
  })

  test('keeps so much, and the newest event however large it is', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    bus.emitEntry(6, [event(60), event(60), event(500)])
    expect([bus.ring.first, bus.ring.end, bus.ring.weight]).toEqual([2, 3, 500])
  })

  test('after a state that came from elsewhere, everybody has a gap', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    bus.emitEntry(6, [event()])
    bus.noteGap()
    expect(bus.ring.after(at('2:4:1')).isGap).toBe(true)
    expect(bus.ring.at(0)).toBeUndefined()
  })
})

describe('An event', () => {
  test('that follows from the log has the same id everywhere, and another the name of its controller', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    bus.emitEntry(6, [event(), event()])
    bus.emitLive(event())
    const ids = [0, 1, 2].map((number) => bus.ring.at(number)?.id)
    expect(ids).toEqual(['2:6:1', '2:6:2', '2:5:1000001@ctrl1'])
  })

  test('has a text that is read as JSON, made once', () => {
    const bus = busOf({ eventsKeptMax: 10, eventBytesKeptMax: 100 })
    let times = 0
    bus.emitLive({ ...event(), fields: () => ({ router_id: `r${(times += 1)}` }) })
    expect(bus.ring.at(0)?.text).toBe(bus.ring.at(0)?.text)
    expect(JSON.parse(bus.ring.at(0)?.text ?? '')).toEqual({
      ...{ namespace: 'router', event_src_id: 'ctrl1', timestamp: '1970-01-01T00:00:00.001Z' },
      ...{ router_id: 'r1', event_id: '2:5:1000001@ctrl1' },
    })
  })
})

test('positions are read as they are written, and nothing else is one', () => {
  expect(positionText(at('1:2:3'))).toBe('1:2:3')
  expect(at('1:2:3@ctrl1')).toEqual(at('1:2:3'))
  for (const text of ['', '1:2', '1:2:x', '1:2:3:4', '1:2:3@', `1:2:${'9'.repeat(17)}`]) {
    expect(parsePosition(text), text).toBeNull()
  }
  expect(comparePositions(at('1:9:9'), at('2:0:0'))).toBeLessThan(0)
  expect(comparePositions(at('1:2:9'), at('1:3:0'))).toBeLessThan(0)
})

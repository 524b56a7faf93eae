import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { EventBus } from '../../src/events/event-bus.ts'
import type { NewEvent } from '../../src/events/event-field.ts'
import { eventLimits } from '../../src/events/limits.ts'
import { EventFile } from '../../src/events/sinks/event-file.ts'
import { FileSink } from '../../src/events/sinks/file-sink.ts'
import { StreamSink } from '../../src/events/sinks/stream-sink.ts'
import { EVENT_NAMESPACES } from '../../src/lib/event-namespaces.ts'
import { eventually } from '../support/eventually.ts'
import { FillingDisk } from '../support/filling-disk.ts'
import { emitEntry } from './emit-entry.ts'

const dir = await mkdtemp(join(tmpdir(), 'flotilla-events-'))
afterAll(() => rm(dir, { recursive: true, force: true }))
const filter = {
  namespaces: new Set(EVENT_NAMESPACES),
  metrics: null,
  sources: null,
  entityTypes: null,
} as const

/** For each bus, the index up to which its state has applied entries. */
const states = new WeakMap<EventBus, { applied: number }>()

/** @param persisted index up to which the state is persisted at the start. */
function busAt(persisted: number, startedAtMs = 1, limits: object = eventLimits): EventBus {
  const identity = { selfId: 'ctrl1', generation: 1 }
  const state = { applied: persisted }
  const bus = new EventBus({
    ...identity,
    startedAtMs,
    limits: limits as typeof eventLimits,
    appliedIndex: () => state.applied,
  })
  states.set(bus, state)
  return bus
}

function applyEntry(bus: EventBus, index: number, events: readonly NewEvent[]): void {
  const state = states.get(bus)
  if (state !== undefined) state.applied = index
  emitEntry(bus, index, events)
}

function sinkOf(bus: EventBus, name: string, options: object = {}, faults: unknown[] = []) {
  const path = join(dir, name)
  const sink = new FileSink({
    bus,
    filter,
    onFault: (fault) => faults.push(fault),
    options: { path, bytesMax: 1e9, keep: 3, isSynced: true, ...options },
  })
  sink.start()
  return { sink, path }
}

function event(name: string): NewEvent {
  return { namespace: 'router', atMs: 1, weight: 100, fields: () => ({ router_id: name }) }
}

async function linesOf(path: string): Promise<Readonly<Record<string, unknown>>[]> {
  const text = await readFile(path, 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
}

describe('An event file', () => {
  test('contains one line for each event, and only its owner can read the file', async () => {
    const bus = busAt(4)
    const { sink, path } = sinkOf(bus, 'plain.log')
    applyEntry(bus, 5, [event('a'), event('b')])
    await sink.stop()
    expect((await linesOf(path)).map((line) => line['router_id'])).toEqual(['a', 'b', undefined])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('is rotated by size, with a limited number of earlier files', async () => {
    const bus = busAt(4)
    const { sink, path } = sinkOf(bus, 'rotated.log', { bytesMax: 300, keep: 2 })
    for (let index = 5; index < 25; index += 1) {
      applyEntry(bus, index, [event(`r${index}`)])
      await eventually(() => expect(sink.written).toBe(index - 4))
    }
    await sink.stop()
    const names = (await readdir(dir)).filter((name) => name.startsWith('rotated.log'))
    expect(names.toSorted()).toEqual(['rotated.log', 'rotated.log.1', 'rotated.log.2'])
    for (const name of names) expect((await stat(join(dir, name))).size).toBeLessThan(450)
    const all = await Promise.all([`${path}.1`, path].map(linesOf))
    expect(all.flat().at(-2)?.['router_id']).toBe('r24')
  })

  test('continues the file of an earlier process without duplicates, and contains a gap event in place of events that were never written', async () => {
    const first = busAt(4)
    const one = sinkOf(first, 'again.log')
    applyEntry(first, 5, [event('a')])
    applyEntry(first, 6, [event('b')])
    await one.sink.stop()
    // The state was last persisted before both entries, so they are applied again.
    const second = busAt(4, 2)
    applyEntry(second, 5, [event('a')])
    applyEntry(second, 6, [event('b')])
    applyEntry(second, 7, [event('c')])
    second.emitLive(event('d'))
    const two = sinkOf(second, 'again.log')
    await two.sink.stop()
    const names = (await linesOf(two.path)).flatMap((line) => line['router_id'] ?? [])
    expect(names).toEqual(['a', 'b', 'c', 'd'])
    // Entries that this process applied, and whose events it dropped without writing them.
    const third = busAt(40, 3)
    applyEntry(third, 41, [event('e')])
    const three = sinkOf(third, 'again.log')
    await three.sink.stop()
    expect((await linesOf(three.path)).at(-3)).toMatchObject({
      namespace: 'events',
      event_type: 'gap',
      to: '1:40:0',
    })
  })

  test('contains, once it is writable again, the events that the event ring still has', async () => {
    const faults: unknown[] = []
    const bus = busAt(4, 1, { eventsKeptMax: 4, eventBytesKeptMax: 1e6 })
    // The folder of the file does not exist.
    const { sink, path } = sinkOf(bus, 'missing/events.log', {}, faults)
    for (let index = 5; index < 15; index += 1) applyEntry(bus, index, [event(`r${index}`)])
    await eventually(() => expect(faults).toHaveLength(1))
    await mkdir(join(dir, 'missing'))
    await eventually(() => expect(faults).toEqual([expect.any(String), null]))
    await sink.stop()
    const names = (await linesOf(path)).flatMap((line) => line['router_id'] ?? [])
    expect(names).toEqual(['r11', 'r12', 'r13', 'r14'])
  })
})

describe('A line of an event file that was written in part', () => {
  const lines = (...names: string[]): Buffer =>
    Buffer.from(names.map((name) => `${JSON.stringify({ name })}\n`).join(''))
  const namesIn = async (path: string): Promise<unknown[]> =>
    (await linesOf(path)).map((line) => line['name'])

  /** Writes all lines as a sink does, beginning again after a failure. */
  async function writeAll(file: EventFile, all: Buffer, disk: FillingDisk): Promise<void> {
    for (let left = all; left.length > 0;) {
      try {
        left = left.subarray(await file.write(left))
      } catch {
        disk.room = Infinity
      }
    }
  }

  test('is completed in the same file, even if the rest of the lines does not fit there', async () => {
    const path = join(dir, 'torn.log')
    const disk = new FillingDisk()
    const file = new EventFile({ path, bytesMax: 60, keep: 3, isSynced: true }, disk)
    // The lines are larger than a file, so the rest of them goes to the next file.
    disk.room = 20
    await writeAll(file, lines('a', 'b', 'c', 'd', 'e', 'f'), disk)
    file.close()
    expect(await namesIn(`${path}.1`)).toEqual(['a', 'b'])
    expect(await namesIn(path)).toEqual(['c', 'd', 'e', 'f'])
  })

  test('is completed in the file that another program moved away meanwhile', async () => {
    const path = join(dir, 'moved.log')
    const disk = new FillingDisk()
    const file = new EventFile({ path, bytesMax: 1000, keep: 3, isSynced: false }, disk)
    const all = lines('a', 'b', 'c')
    disk.room = 20
    const written = await file.write(all)
    await rename(path, `${path}.old`)
    disk.room = Infinity
    await writeAll(file, all.subarray(written), disk)
    file.close()
    expect(await namesIn(`${path}.old`)).toEqual(['a', 'b'])
    expect(await namesIn(path)).toEqual(['c'])
  })

  test('does not damage the first line of the next process', async () => {
    const path = join(dir, 'torn-before.log')
    const options = { path, bytesMax: 1000, keep: 3, isSynced: false }
    await writeFile(path, lines('a', 'torn').subarray(0, -5))
    const file = new EventFile(options)
    await writeAll(file, lines('b'), new FillingDisk())
    file.close()
    const text = await readFile(path, 'utf8')
    expect(text.split('\n').slice(2)).toEqual([lines('b').toString().trimEnd(), ''])
  })

  test('begins on a new line if it is written again, because it could not be synced', async () => {
    const path = join(dir, 'unsynced.log')
    const disk = new FillingDisk()
    const file = new EventFile({ path, bytesMax: 1000, keep: 3, isSynced: true }, disk)
    disk.room = 20
    disk.isSyncFailing = true
    await expect(file.write(lines('a', 'b'))).rejects.toThrow('no space left')
    disk.isSyncFailing = false
    disk.room = Infinity
    await writeAll(file, lines('a', 'b'), disk)
    file.close()
    const text = await readFile(path, 'utf8')
    expect(text).toBe(`${lines('a', 'b').toString().slice(0, 20)}\n${lines('a', 'b').toString()}`)
  })
})

describe('Events on standard output', () => {
  test('are retained while the output buffer is full, and written later', async () => {
    const bus = busAt(4)
    let text = ''
    const lines = { isCrowded: true, write: (more: string) => void (text += more) }
    const sink = new StreamSink(bus, filter, lines)
    applyEntry(bus, 5, [event('a')])
    await new Promise((resolve) => setImmediate(resolve))
    expect(text).toBe('')
    lines.isCrowded = false
    await eventually(() => expect(text).toContain('"router_id":"a"'))
    sink.stop()
    expect(sink.lost).toBe(0)
  })

  test('are counted as lost if they are evicted from memory because the reader of the output is too slow', async () => {
    const bus = busAt(4, 1, { eventsKeptMax: 2, eventBytesKeptMax: 1e6 })
    let text = ''
    const lines = { isCrowded: true, write: (more: string) => void (text += more) }
    const sink = new StreamSink(bus, filter, lines)
    for (let index = 5; index < 10; index += 1) applyEntry(bus, index, [event(`r${index}`)])
    lines.isCrowded = false
    await eventually(() => expect(text).toContain('r9'))
    expect(text).toContain('"event_type":"gap"')
    expect(sink.lost).toBe(3)
    sink.stop()
  })
})

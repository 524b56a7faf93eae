import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { SoftBatchSchema } from '../../proto/gen/soft_pb.ts'
import {
  defaultSoftStateOptions,
  SoftStateChannel,
  type SoftStateOptions,
} from '../../src/cluster/soft-state/soft-state.ts'
import { SOFT_STATE_BARRIER_MS_MAX, type SoftTopicDefinition } from '../../src/ports/soft-state.ts'

const text: SoftTopicDefinition<string> = {
  encode: (value) => new TextEncoder().encode(value),
  decode: (bytes) => new TextDecoder().decode(bytes),
  ttlMs: 5000,
  ownerBytesMax: 1024 * 1024,
}

interface Note {
  readonly from: string
  readonly to: string
  readonly topic: string
  readonly payload: Uint8Array
}

/** Controllers whose messages wait until a test delivers them. No periodic sending is started. */
class Wire {
  nowMs = 1000
  readonly notes: Note[] = []
  readonly members: string[] = []
  readonly #listeners = new Map<string, (from: string, payload: Uint8Array) => void>()
  readonly #links = new Map<string, ((peer: string, isReady: boolean) => void)[]>()
  readonly #ready = new Set<string>()

  add(id: string, options: Partial<SoftStateOptions> = {}) {
    this.members.push(id)
    const links: ((peer: string, isReady: boolean) => void)[] = []
    this.#links.set(id, links)
    return new SoftStateChannel(
      { ...defaultSoftStateOptions, selfId: id, epoch: 1, ...options },
      {
        clock: { nowMs: () => 0, monotonicMs: () => this.nowMs },
        members: () => this.members,
        peers: {
          note: (to, topic, payload) => {
            if (this.#ready.has(`${id} ${to}`)) this.notes.push({ from: id, to, topic, payload })
          },
          onNote: (topic, listener) => this.#listeners.set(`${id} ${topic}`, listener),
          onLink: (listener) => links.push(listener),
          readyPeers: () => this.members.filter((peer) => this.#ready.has(`${id} ${peer}`)),
        },
      },
      { text },
    )
  }

  link(a: string, b: string, isReady = true): void {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      if (isReady) this.#ready.add(`${from} ${to}`)
      else this.#ready.delete(`${from} ${to}`)
      for (const listener of this.#links.get(from) ?? []) listener(to, isReady)
    }
  }

  /** Delivers messages until none waits, except those to `deaf`. */
  async deliver(deaf = ''): Promise<void> {
    for (let turn = 0; turn < 20; turn += 1) {
      await Promise.resolve()
      for (const { from, to, topic, payload } of this.notes.splice(0)) {
        if (to !== deaf) this.#listeners.get(`${to} ${topic}`)?.(from, payload)
      }
    }
  }

  count(topic: string): number {
    return this.notes.filter((note) => note.topic === topic).length
  }
}

let wire: Wire
let isReached: boolean

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  wire = new Wire()
  isReached = false
})
afterEach(() => vi.useRealTimers())

/** Two controllers, each of which has received the values of the other. */
async function pair(options: Partial<SoftStateOptions> = {}) {
  const [a, b] = [wire.add('a', options), wire.add('b')]
  wire.link('a', 'b')
  a.tick()
  b.tick()
  await wire.deliver()
  return { a, b, published: a.open('text'), seen: b.open('text') }
}

function reach(channel: { reachLatest(): Promise<void> }): void {
  void channel.reachLatest().then(() => (isReached = true))
}

test('a controller that waits for the latest soft state of its peers receives unsent values before the peers’ send interval ends', async () => {
  const { b, published, seen } = await pair()
  published.publish('x', '1')
  reach(b)
  expect(seen.get('a', 'x')).toBeUndefined()
  await wire.deliver()
  expect([isReached, seen.get('a', 'x')]).toEqual([true, '1'])
})

test('a peer confirms that it has sent all its soft state only after its last batch', async () => {
  const { a, b, published, seen } = await pair({ batchBytesMax: 64 })
  for (const key of ['x', 'y', 'z']) published.publish(key, 'a value of some length')
  reach(b)
  await wire.deliver()
  expect([isReached, [...seen.values()].length]).toEqual([false, 1])
  for (const values of [2, 3]) {
    expect(isReached).toBe(false)
    a.tick()
    await wire.deliver()
    expect([...seen.values()]).toHaveLength(values)
  }
  expect(isReached).toBe(true)
})

test('a peer that has sent all its soft state sends no further batch', async () => {
  const { b } = await pair()
  reach(b)
  await Promise.resolve()
  await Promise.resolve()
  expect(wire.count('soft-reach')).toBe(1)
  const batches: number[] = []
  for (let turn = 0; turn < 5; turn += 1) {
    batches.push(...wire.notes.filter(({ topic }) => topic === 'soft').map(valuesIn))
    await wire.deliver()
  }
  expect([isReached, batches]).toEqual([true, []])
})

function valuesIn({ payload }: Note): number {
  return fromBinary(SoftBatchSchema, payload).values.length
}

test('callers that arrive while peers are queried for soft state share the next query, which begins a tick later', async () => {
  const { b, published, seen } = await pair()
  reach(b)
  await Promise.resolve()
  await Promise.resolve()
  let later = 0
  for (let count = 0; count < 100; count += 1) void b.reachLatest().then(() => (later += 1))
  published.publish('x', '1')
  await wire.deliver()
  expect([isReached, later]).toEqual([true, 0])
  wire.nowMs += defaultSoftStateOptions.tickMs
  await vi.advanceTimersByTimeAsync(defaultSoftStateOptions.tickMs)
  expect(wire.count('soft-reach')).toBe(1)
  await wire.deliver()
  expect([later, seen.get('a', 'x')]).toEqual([100, '1'])
})

test('a controller without reachable peers has the latest soft state', async () => {
  reach(wire.add('a'))
  await wire.deliver()
  expect(isReached).toBe(true)
})

test('a controller waits for the soft state of a silent peer only until a time limit', async () => {
  const { b } = await pair()
  reach(b)
  await wire.deliver('a')
  await vi.advanceTimersByTimeAsync(SOFT_STATE_BARRIER_MS_MAX - 1)
  expect(isReached).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(isReached).toBe(true)
})

test('a controller stops waiting for the soft state of a peer when the connection to the peer closes', async () => {
  const { b } = await pair()
  reach(b)
  await wire.deliver('a')
  wire.link('a', 'b', false)
  await wire.deliver()
  expect(isReached).toBe(true)
})

test('a request for soft state from a controller that is not a member gets no response', async () => {
  const { b } = await pair()
  reach(b)
  await Promise.resolve()
  await Promise.resolve()
  wire.members.splice(wire.members.indexOf('b'), 1)
  await wire.deliver()
  expect(isReached).toBe(false)
})

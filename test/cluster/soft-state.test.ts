import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { SoftBatchSchema } from '../../proto/gen/soft_pb.ts'
import {
  defaultSoftStateOptions,
  SoftStateChannel,
  type SoftStateOptions,
} from '../../src/cluster/soft-state/soft-state.ts'
import type { Clock } from '../../src/lib/clock.ts'
import {
  SOFT_VALUE_OVERHEAD_BYTES,
  type SoftTopic,
  type SoftTopicDefinition,
  type SoftTopicTable,
} from '../../src/ports/soft-state.ts'
import { softTopics } from '../../src/ports/soft-topics.ts'
import { formCluster, type TestCluster } from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'

type TextTopic = SoftTopicDefinition<string>

const textTopic = (changes: Partial<TextTopic> = {}): TextTopic => ({
  encode: (value) => new TextEncoder().encode(value),
  decode: (bytes) => {
    const text = new TextDecoder().decode(bytes)
    if (text === 'poison') throw new Error('not a value')
    return text
  },
  ttlMs: 5000,
  ownerBytesMax: 4096,
  ...changes,
})

interface Note {
  readonly from: string
  readonly to: string
  readonly topic: string
  readonly payload: Uint8Array
}

/**
 * Controllers whose messages a test delivers, loses or repeats; the test also controls the clock.
 */
class Network {
  nowMs = 1000
  readonly clock: Clock = { nowMs: () => 0, monotonicMs: () => this.nowMs }
  readonly members = new Set<string>()
  readonly sent: Note[] = []
  /** If true, new messages are lost. */
  isLossy = false
  readonly #ends = new Map<string, End>()

  /** A controller with only the topic `text`. */
  add(
    id: string,
    options: Partial<SoftStateOptions> = {},
    text: Partial<TextTopic> = {},
  ): SoftStateChannel<{ readonly text: TextTopic }> {
    return this.join(id, { text: textTopic(text) }, options)
  }

  join<T extends SoftTopicTable>(
    id: string,
    table: T,
    options: Partial<SoftStateOptions> = {},
  ): SoftStateChannel<T> {
    this.members.add(id)
    const end: End = { listeners: new Map(), links: [], ready: new Set(), channel: null }
    const channel = new SoftStateChannel(
      { ...defaultSoftStateOptions, selfId: id, epoch: 1, ...options },
      {
        clock: this.clock,
        members: () => [...this.members],
        peers: {
          note: (to, topic, payload) => {
            if (end.ready.has(to) && !this.isLossy) this.sent.push({ from: id, to, topic, payload })
          },
          onNote: (topic, listener) => end.listeners.set(topic, listener),
          onLink: (listener) => end.links.push(listener),
          readyPeers: () => [...end.ready],
        },
      },
      table,
    )
    end.channel = channel
    this.#ends.set(id, end)
    return channel
  }

  link(from: string, to: string, isReady: boolean): void {
    const end = this.#end(from)
    if (isReady) end.ready.add(to)
    else end.ready.delete(to)
    for (const listener of end.links) listener(to, isReady)
  }

  connect(a: string, b: string): void {
    this.link(a, b, true)
    this.link(b, a, true)
  }

  deliver(note: Note): void {
    this.#end(note.to).listeners.get(note.topic)?.(note.from, note.payload)
  }

  /** Advances time in ticks, and delivers messages after each. */
  run(ms: number): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.nowMs += 50
      for (const { channel } of this.#ends.values()) channel?.tick()
      for (const note of this.sent.splice(0)) this.deliver(note)
    }
  }

  #end(id: string): End {
    const end = this.#ends.get(id)
    if (end === undefined) throw new Error(`no ${id}`)
    return end
  }
}

interface End {
  readonly listeners: Map<string, (from: string, payload: Uint8Array) => void>
  readonly links: ((peer: string, isReady: boolean) => void)[]
  readonly ready: Set<string>
  channel: { tick(): void } | null
}

function seen(topic: Pick<SoftTopic<string | number>, 'values'>): string[] {
  return [...topic.values()].map(({ owner, key, value }) => `${owner}/${key}=${value}`).sort()
}

test('a new connection first transfers all soft state, and then each change', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const b = network.add('b').open('text')
  a.publish('x', '1')
  network.connect('a', 'b')
  network.run(100)
  expect(seen(b)).toEqual(['a/x=1'])
  a.publish('x', '2')
  a.publish('y', '3')
  a.withdraw('x')
  b.publish('x', 'mine')
  network.run(100)
  expect(seen(b)).toEqual(['a/y=3', 'b/x=mine'])
  expect(seen(a)).toEqual(seen(b))
  expect(b.get('a', 'y')).toBe('3')
  expect(b.get('b', 'x')).toBe('mine')
})

test('several changes of soft state within one tick are sent once, and an owner without changes sends a heartbeat every second', () => {
  const network = new Network()
  const channel = network.add('a')
  const a = channel.open('text')
  network.add('b').open('text')
  network.link('a', 'b', true)
  network.run(100)
  for (let n = 0; n < 10; n += 1) a.publish('x', `${n}`)
  network.nowMs += 50
  channel.tick()
  const batches = network.sent.map(({ payload }) => fromBinary(SoftBatchSchema, payload))
  expect(batches.map(({ values }) => values.length)).toEqual([1])
  network.sent.length = 0
  for (let n = 0; n < 19; n += 1) {
    network.nowMs += 50
    channel.tick()
  }
  expect(network.sent).toHaveLength(0)
  network.nowMs += 50
  channel.tick()
  expect(network.sent).toHaveLength(1)
})

test('soft state of an unreachable owner expires, and is restored when the owner sends again', () => {
  const network = new Network()
  const table = { text: textTopic(), long: textTopic({ ttlMs: 60_000 }) }
  const channel = network.join('a', table)
  const a = channel.open('text')
  const long = channel.open('long')
  const other = network.join('b', table)
  const b = other.open('text')
  const longHere = other.open('long')
  network.connect('a', 'b')
  a.publish('x', '1')
  long.publish('x', '1')
  network.run(4900)
  expect(seen(b)).toEqual(['a/x=1'])
  const gone: unknown[] = []
  const lost: unknown[] = []
  b.onChange((owner, key, value, was) => {
    gone.push([owner, key, value])
    lost.push(was)
  })
  expect(gone.splice(0)).toEqual([['a', 'x', '1']])
  network.isLossy = true
  network.run(6000)
  expect(seen(b)).toEqual([])
  expect(seen(longHere)).toEqual(['a/x=1'])
  expect(gone).toEqual([['a', 'x', undefined]])
  expect(lost).toEqual([undefined, '1'])
  network.isLossy = false
  network.run(3000)
  expect(seen(b)).toEqual(['a/x=1'])
  expect(gone).toEqual([
    ['a', 'x', undefined],
    ['a', 'x', '1'],
  ])
})

test('a lost batch of soft state is followed by a full transmission, which also withdraws values that were deleted', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const b = network.add('b').open('text')
  network.connect('a', 'b')
  a.publish('x', '1')
  a.publish('y', '1')
  network.run(2000)
  const told: unknown[] = []
  b.onChange((_, key, value, lost) => told.push([key, value, lost]))
  told.length = 0
  network.isLossy = true
  a.withdraw('x')
  a.publish('z', '1')
  network.run(100)
  network.isLossy = false
  expect(seen(b)).toEqual(['a/x=1', 'a/y=1'])
  network.run(3000)
  expect(seen(b)).toEqual(['a/y=1', 'a/z=1'])
  // A value that has not changed is not reported again.
  expect(told).toEqual([
    ['z', '1', undefined],
    ['x', undefined, undefined],
  ])
})

test('an older batch of soft state that arrives late or a second time changes nothing', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const b = network.add('b').open('text')
  network.connect('a', 'b')
  const caught: Note[] = []
  const deliver = network.deliver.bind(network)
  network.deliver = (note) => {
    if (note.to === 'b') caught.push(note)
    deliver(note)
  }
  a.publish('x', 'old')
  network.run(50)
  a.publish('x', 'new')
  network.run(50)
  network.link('a', 'b', false)
  network.link('a', 'b', true)
  a.withdraw('x')
  a.publish('y', 'newest')
  network.run(100)
  expect(seen(b)).toEqual(['a/y=newest'])
  expect(caught.length).toBeGreaterThan(2)
  for (const note of caught.splice(0)) deliver(note)
  expect(seen(b)).toEqual(['a/y=newest'])
})

test('the soft state of an owner is discarded after the owner’s restart, even if its disk was lost and its start count began again', () => {
  const network = new Network()
  const a = network.add('a', { epoch: 7 }).open('text')
  const b = network.add('b').open('text')
  network.connect('a', 'b')
  a.publish('x', '1')
  a.publish('y', '1')
  network.run(200)
  const lost: unknown[] = []
  b.onChange((_, key, value, was) => value === undefined && lost.push([key, was]))
  const restarted = network.add('a', { epoch: 8 }).open('text')
  restarted.publish('y', '2')
  network.connect('a', 'b')
  network.run(200)
  expect(seen(b)).toEqual(['a/y=2'])
  expect(lost, 'its owner has not removed it').toEqual([['x', '1']])
  const wiped = network.add('a', { epoch: 1 }).open('text')
  wiped.publish('z', '3')
  network.connect('a', 'b')
  network.run(8000)
  expect(seen(b)).toEqual(['a/z=3'])
})

test('the soft state of a former member is discarded, and new values from it are ignored', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const b = network.add('b').open('text')
  network.connect('a', 'b')
  a.publish('x', '1')
  network.run(100)
  expect(seen(b)).toEqual(['a/x=1'])
  network.members.delete('a')
  a.publish('y', '1')
  network.run(1000)
  expect(seen(b)).toEqual([])
})

test('an owner of soft state and its receivers enforce the size limit for one owner', () => {
  const network = new Network()
  const big = 'v'.repeat(1000)
  const a = network.add('a', {}, { ownerBytesMax: 10_000 }).open('text')
  const hearing = network.add('b', {}, { ownerBytesMax: 2 * (1001 + SOFT_VALUE_OVERHEAD_BYTES) })
  const b = hearing.open('text')
  network.connect('a', 'b')
  const accepted = Array.from({ length: 12 }, (_, n) => a.publish(`${n % 10}`, big))
  expect(accepted.filter((isTaken) => !isTaken)).toHaveLength(1)
  network.run(500)
  expect(seen(b)).toHaveLength(2)
  expect(hearing.counts).toMatchObject({ unknownTopics: 0, malformed: 0, tooLarge: 7 })
  for (let n = 0; n < 9; n += 1) a.withdraw(`${n}`)
  expect(a.publish('last', big)).toBe(true)
  network.run(500)
  expect([...b.values()].map(({ key }) => key)).toContain('last')
})

test('a receiver of soft state enforces the size limit for all owners together', () => {
  const network = new Network()
  const value = 'v'.repeat(1000)
  const size = 1001 + SOFT_VALUE_OVERHEAD_BYTES
  const b = network.add('b', { totalBytesMax: 3 * size }, { ownerBytesMax: 100_000 })
  const here = b.open('text')
  for (const id of ['a', 'c']) {
    const topic = network.add(id, {}, { ownerBytesMax: 100_000 }).open('text')
    network.connect(id, 'b')
    for (let n = 0; n < 4; n += 1) topic.publish(`${n}`, value)
  }
  network.run(500)
  expect(b.counts.bytes).toBe(3 * size)
  expect(here.publish('x', value)).toBe(false)
})

test('soft state of a vital topic is sent before queued values of other topics, and other topics cannot use up its space', () => {
  const network = new Network()
  const table = {
    large: textTopic({ ownerBytesMax: 100_000 }),
    vital: textTopic({ isVital: true }),
  }
  const a = network.join('a', table, { batchBytesMax: 4096, totalBytesMax: 60_000 })
  const b = network.join('b', table)
  const [largeA, vitalA] = [a.open('large'), a.open('vital')]
  const [largeB, vitalB] = [b.open('large'), b.open('vital')]
  let count = 0
  while (largeA.publish(`${count}`, 'v'.repeat(1000))) count += 1
  expect(count).toBe(58)
  network.connect('a', 'b')
  for (let tick = 1; seen(largeB).length < count; tick += 1) {
    expect(vitalA.publish('self', `alive ${tick}`)).toBe(true)
    network.run(50)
    expect(vitalB.get('a', 'self')).toBe(`alive ${tick}`)
    expect(tick).toBeLessThan(count)
  }
  vitalA.withdraw('self')
  network.run(50)
  expect(seen(vitalB)).toEqual([])
})

test('replacing a value of soft state uses up the size limit only by the difference of the two sizes', () => {
  const network = new Network()
  const a = network.add('a', { totalBytesMax: 1500 }).open('text')
  expect(a.publish('x', 'v'.repeat(1000))).toBe(true)
  expect(a.publish('x', 'w'.repeat(1000))).toBe(true)
  expect(a.publish('y', 'v'.repeat(1000))).toBe(false)
})

test('many values of soft state are sent in batches of limited size, one batch per tick', () => {
  const network = new Network()
  const large = { ownerBytesMax: 1_000_000 }
  const a = network.add('a', { batchBytesMax: 4096 }, large).open('text')
  const b = network.add('b', {}, large).open('text')
  for (let n = 0; n < 100; n += 1) a.publish(`${n}`, 'v'.repeat(1000))
  network.connect('a', 'b')
  network.run(50)
  const first = seen(b).length
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(5)
  a.publish('99', 'changed meanwhile')
  network.run(50 * 100)
  expect(seen(b)).toHaveLength(100)
  expect(b.get('a', '99')).toBe('changed meanwhile')
})

test('a topic of soft state that is opened late contains the values received earlier, and invalid bytes are discarded', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const late = network.add('b')
  network.connect('a', 'b')
  a.publish('x', '1')
  network.run(100)
  const b = late.open('text')
  expect(seen(b)).toEqual(['a/x=1'])
  const heard: unknown[] = []
  b.onChange((...change) => heard.push(change))
  expect(heard).toEqual([['a', 'x', '1']])
  a.publish('x', 'poison')
  a.publish('y', '2')
  network.run(100)
  expect(seen(b)).toEqual(['a/x=1', 'a/y=2'])
  expect(late.counts.malformed).toBe(1)
})

test('a batch of soft state with a number that is too large is discarded as a whole', () => {
  const network = new Network()
  const a = network.add('a').open('text')
  const b = network.add('b').open('text')
  network.connect('a', 'b')
  const deliver = network.deliver.bind(network)
  network.deliver = (note) => {
    if (note.to !== 'b') return deliver(note)
    const batch = fromBinary(SoftBatchSchema, note.payload)
    const last = batch.values.at(-1)
    if (last !== undefined) last.sequence = 2n ** 60n
    deliver({ ...note, payload: toBinary(SoftBatchSchema, batch) })
    expect(seen(b)).toEqual([])
    deliver(note)
  }
  a.publish('x', '1')
  a.publish('y', '2')
  network.run(50)
  expect(seen(b)).toEqual(['a/x=1', 'a/y=2'])
})

test('topics of soft state that only a newer release knows are ignored and counted, and other topics still work', () => {
  const network = new Network()
  const newer = network.join('a', { text: textTopic(), weather: textTopic() })
  const b = network.add('b')
  network.connect('a', 'b')
  newer.open('weather').publish('x', 'rain')
  newer.open('text').publish('x', '1')
  network.run(100)
  expect(seen(b.open('text'))).toEqual(['a/x=1'])
  expect(b.counts).toMatchObject({ unknownTopics: 1, malformed: 0, tooLarge: 0 })
})

test('a topic of soft state can be opened only once, and must be in the table of topics', () => {
  const channel = new Network().add('a')
  channel.open('text')
  expect(() => channel.open('text')).toThrow('topic text has one user')
  expect(() => channel.open('weather' as 'text')).toThrow('topic weather is in the table of topics')
})

test('the last-use times of a hundred thousand sessions fit the limits, and reach a controller that connects later', () => {
  const network = new Network()
  const a = network.join('a', softTopics).open('activity')
  const b = network.join('b', softTopics, { batchBytesMax: 1024 * 1024 }).open('activity')
  for (let n = 0; n < 100_000; n += 1) {
    if (!a.publish(`${n}`.padStart(36, 's'), 1_700_000_000_000 + n)) throw new Error(`${n}`)
  }
  network.connect('a', 'b')
  network.run(30_000)
  expect([...b.values()]).toHaveLength(100_000)
  expect(b.get('a', '99999'.padStart(36, 's'))).toBe(1_700_000_099_999)
})

let cluster: TestCluster | null = null
afterEach(async () => {
  await cluster?.stop()
  cluster = null
})

test('two controllers share their soft state over the mesh, and each discards that of the other when the other restarts', async () => {
  cluster = await formCluster(2)
  const n1 = await cluster.start('n1')
  const n2 = await cluster.start('n2')
  const [a, b] = [n1.clusterNode.soft.open('activity'), n2.clusterNode.soft.open('activity')]
  a.publish('x', 1)
  b.publish('x', 2)
  b.publish('y', 2)
  await until('both know both', () => seen(a).length === 3 && seen(b).length === 3)
  expect(seen(a)).toEqual(['n1/x=1', 'n2/x=2', 'n2/y=2'])
  await n2.kill()
  const again = await cluster.start('n2')
  const topic = again.clusterNode.soft.open('activity')
  topic.publish('x', 3)
  await until('n2 is heard again', () => a.get('n2', 'x') === 3)
  await until('the previous value of n2 is gone', () => a.get('n2', 'y') === undefined)
  await until('and hears what was there', () => topic.get('n1', 'x') === 1)
})

import { expect, test, vi } from 'vitest'

import type { SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import type { ConsensusThreadEvent } from '../../src/cluster/thread-channel.ts'
import { SnapshotSender } from '../../src/cluster/state-transfer/snapshot-sender.ts'
import { TransferPacer } from '../../src/cluster/state-transfer/transfer-pacer.ts'
import { configuration, first, ManualClock, second } from './snapshot-fixture.ts'

const position = { term: 2, index: 50 }

function sender(windowChunks = 2) {
  const events: ConsensusThreadEvent[] = []
  const chunks: SnapshotChunk[] = []
  const done: (readonly [string, string])[] = []
  const suspended: number[] = []
  const clock = new ManualClock()
  const state = { isReachable: true }
  const made = new SnapshotSender(
    { windowChunks, silenceMsMax: 1000, bytesPerSecond: Infinity },
    {
      clock,
      post: (event) => events.push(event),
      send: (_to, _term, sent) => {
        if (state.isReachable) chunks.push(sent)
        return state.isReachable
      },
      onDone: (to, outcome) => done.push([to, outcome]),
      onSuspended: (_to, chunksWritten) => suspended.push(chunksWritten),
    },
  )
  const acknowledge = (number: number, failed = false): void =>
    made.onAck('slow', {
      $typeName: 'flotilla.mesh.v1.SnapshotAck',
      snapshotId: chunks[0]?.snapshotId ?? new Uint8Array(0),
      number,
      failed,
    })
  const credits = (): number =>
    events.reduce((sum, event) => sum + (event.type === 'snapshotCredit' ? event.chunks : 0), 0)
  const numbers = (): number[] => chunks.map(({ number }) => number)
  const nothingMatches = (): number => 0
  return {
    made,
    events,
    chunks,
    done,
    suspended,
    clock,
    state,
    acknowledge,
    credits,
    numbers,
    nothingMatches,
  }
}

test('a snapshot is read no faster than its receiver writes', () => {
  const { made, chunks, done, events, acknowledge, credits } = sender()
  made.start('slow', 4)
  made.start('slow', 4)
  expect(events).toEqual([{ type: 'snapshotWanted', id: 1, to: 'slow' }])
  made.onOpened(1, position, configuration)
  expect(credits()).toBe(2)
  made.onChunk(1, first, false)
  made.onChunk(1, second, false)
  expect(credits()).toBe(2)
  acknowledge(1)
  expect(credits()).toBe(3)
  made.onChunk(1, second, true)
  acknowledge(2)
  expect(done).toEqual([])
  acknowledge(3)
  expect(done).toEqual([['slow', 'sent']])
  expect(chunks.map(({ number, last }) => [number, last])).toEqual([
    [0, false],
    [1, false],
    [2, true],
  ])
  expect(chunks[0]).toMatchObject({ position: { term: 2n, index: 50n }, configuration })
})

test.each([
  'refusal of a chunk',
  'silence of the receiver',
  'removal of the receiver',
  'loss of leadership',
  'failure of the source',
])('a snapshot transfer ends, and its failure is reported once, after the %s', (how) => {
  const { made, done, clock, acknowledge, events, nothingMatches } = sender()
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  made.onChunk(1, first, false)
  if (how === 'refusal of a chunk') acknowledge(0, true)
  if (how === 'removal of the receiver') made.abandonUnless((id) => id !== 'slow')
  if (how === 'loss of leadership') made.abandonOtherThan(5)
  if (how === 'failure of the source') made.onSourceFailed(1, 'disk')
  if (how === 'silence of the receiver') {
    clock.atMs = 1001
    made.sweep(nothingMatches)
  }
  expect(done).toEqual([['slow', 'failed']])
  expect(events.at(-1)).toEqual({ type: 'snapshotOver', id: 1, isSent: false })
  acknowledge(1)
  made.onLinkLost('slow')
  made.onLinkReady('slow')
  expect(done.length).toBe(1)
})

test('a snapshot transfer continues on the next connection with the first unacknowledged chunk', () => {
  const { made, done, suspended, acknowledge, credits, numbers, state } = sender(3)
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  made.onChunk(1, first, false)
  made.onChunk(1, second, false)
  acknowledge(1)
  made.onChunk(1, first, false)
  made.onLinkLost('slow')
  state.isReachable = false
  // The chunk was read before the connection was lost, and arrives later.
  made.onChunk(1, second, false)
  expect(suspended).toEqual([1])
  expect(done).toEqual([])
  const asked = credits()
  made.onLinkReady('slow')
  expect(credits()).toBe(asked)
  state.isReachable = true
  made.onLinkReady('slow')
  expect(numbers()).toEqual([0, 1, 2, 1, 2, 3])
  acknowledge(4)
  made.onChunk(1, second, true)
  acknowledge(5)
  expect(done).toEqual([['slow', 'sent']])
})

test('a snapshot chunk that could not be sent immediately is sent later', () => {
  const { made, done, numbers, state, nothingMatches } = sender()
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  state.isReachable = false
  made.onChunk(1, first, false)
  made.sweep(nothingMatches)
  expect(numbers()).toEqual([])
  state.isReachable = true
  made.sweep(nothingMatches)
  expect(numbers()).toEqual([0])
  expect(done).toEqual([])
})

test('a snapshot transfer that the receiver refuses on a new connection is reported as failed', () => {
  const { made, done, acknowledge } = sender()
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  made.onChunk(1, first, false)
  made.onLinkLost('slow')
  made.onLinkReady('slow')
  acknowledge(0, true)
  expect(done).toEqual([['slow', 'failed']])
})

test('an interrupted snapshot transfer is kept only for a limited time while the receiver is silent', () => {
  const { made, done, clock, state, events, nothingMatches } = sender()
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  made.onChunk(1, first, false)
  state.isReachable = false
  made.onLinkLost('slow')
  clock.atMs = 1000
  made.sweep(nothingMatches)
  // A repeated request of the Raft core continues the same transfer.
  made.start('slow', 4)
  expect(events.filter(({ type }) => type === 'snapshotWanted').length).toBe(1)
  expect(done).toEqual([])
  clock.atMs = 1001
  made.sweep(nothingMatches)
  expect(done).toEqual([['slow', 'failed']])
})

test('after a second consecutive failure of a snapshot transfer the next attempt is delayed, longer each time', () => {
  const { made, clock, done, events, nothingMatches } = sender()
  const begun = (): number => events.filter(({ type }) => type === 'snapshotWanted').length
  const fail = (): void => made.onSourceFailed(begun(), 'disk')
  made.start('slow', 4)
  fail()
  made.start('slow', 4)
  expect(begun()).toBe(2)
  fail()
  for (const pauseMs of [1000, 2000, 4000]) {
    const before = begun()
    made.start('slow', 4)
    clock.atMs += pauseMs - 1
    made.sweep(nothingMatches)
    expect(begun()).toBe(before)
    clock.atMs += 1
    made.sweep(nothingMatches)
    expect(begun()).toBe(before + 1)
    fail()
  }
  expect(done.length).toBe(5)
  // After a change of leadership, the new leader decides about transfers.
  made.start('slow', 4)
  made.abandonOtherThan(5)
  clock.atMs += 60_000
  made.sweep(nothingMatches)
  expect(begun()).toBe(5)
})

test('a snapshot transfer ends when its receiver has caught up by other means', () => {
  const { made, done } = sender()
  made.start('slow', 4)
  made.sweep(() => 0)
  made.onOpened(1, position, configuration)
  made.sweep(() => 49)
  expect(done).toEqual([])
  made.sweep(() => 50)
  expect(done).toEqual([['slow', 'sent']])
})

test('fewer snapshot chunks are in transit while the receiver acknowledges them slowly', () => {
  const { made, clock, acknowledge, credits } = sender(8)
  made.start('slow', 4)
  made.onOpened(1, position, configuration)
  let read = 0
  const readAll = (): void => {
    for (; read < credits(); read += 1) made.onChunk(1, first, false)
  }
  for (let written = 1; written <= 20; written += 1) {
    readAll()
    clock.atMs += 10
    acknowledge(written)
  }
  readAll()
  expect(read - 20).toBe(8)
  for (let written = 21; written <= 60; written += 1) {
    clock.atMs += 450
    acknowledge(written)
    readAll()
  }
  expect(read - 60).toBe(1)
})

test('all snapshot transfers share one rate limit evenly', () => {
  vi.useFakeTimers()
  try {
    const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
    const given: string[] = []
    const chunkBytes = 512 * 1024
    const pacer: TransferPacer<string> = new TransferPacer(1024 * 1024, clock, (transfer) => {
      given.push(transfer)
      setTimeout(() => {
        pacer.settle(chunkBytes)
        pacer.join(transfer)
      }, 1)
    })
    for (const transfer of ['a', 'b', 'a']) pacer.join(transfer)
    vi.advanceTimersByTime(10_000)
    const count = (of: string): number => given.filter((one) => one === of).length
    // Ten seconds, at two such chunks per second.
    expect(given.length).toBeGreaterThanOrEqual(19)
    expect(given.length).toBeLessThanOrEqual(22)
    expect(Math.abs(count('a') - count('b'))).toBeLessThanOrEqual(1)
    pacer.stop()
  } finally {
    vi.useRealTimers()
  }
})

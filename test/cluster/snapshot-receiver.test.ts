import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { PositionSchema, type SnapshotAck, type SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import type { ConsensusThreadEvent } from '../../src/cluster/thread-channel.ts'
import {
  type ReceivedSnapshot,
  SnapshotReceiver,
} from '../../src/cluster/state-transfer/snapshot-receiver.ts'
import {
  bytes,
  chunk,
  configuration,
  first,
  ManualClock,
  second,
  snapshotId,
} from './snapshot-fixture.ts'

function receiver() {
  const events: ConsensusThreadEvent[] = []
  const acks: SnapshotAck[] = []
  const received: ReceivedSnapshot[] = []
  const failures: string[] = []
  const clock = new ManualClock()
  const leadership: { term: number; leader: string | null } = { term: 3, leader: 'leader' }
  const made = new SnapshotReceiver(
    { chunkBytesMax: 100, unwrittenBytesMax: 150, silenceMsMax: 1000 },
    {
      clock,
      leadership: () => leadership,
      post: (event) => events.push(event),
      send: (_to, _term, ack) => acks.push(ack),
      onReceived: (snapshot) => received.push(snapshot),
      onFailed: (_from, reason) => failures.push(reason),
    },
  )
  const finish = (): void => {
    made.onWritten(1)
    made.onWritten(1)
    made.onFinished(1, { term: 2, index: 50 }, configuration)
  }
  return { made, events, acks, received, failures, clock, leadership, finish }
}

test('a received snapshot is offered to the Raft core only when it is complete, written and equal to its announcement', async () => {
  const { made, events, acks, received } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onChunk('leader', 3, chunk(1, second))
  made.onWritten(1)
  expect(acks).toMatchObject([{ number: 1, failed: false }])
  expect(events.map(({ type }) => type)).toEqual(['receiveBegin', 'receiveChunk', 'receiveChunk'])
  made.onWritten(1)
  expect(events.at(-1)).toEqual({ type: 'receiveFinish', id: 1 })
  expect(received).toEqual([])
  made.onFinished(1, { term: 2, index: 50 }, configuration)
  expect(received).toMatchObject([{ from: 'leader', term: 3, position: { term: 2, index: 50 } }])
  const restored = made.restore({ term: 2, index: 50 })
  expect(events.at(-1)).toEqual({ type: 'restore', id: 1 })
  made.onRestored(1)
  await restored
  expect(acks.at(-1)).toMatchObject({ number: 2, failed: false })
})

test.each<[string, SnapshotChunk[], RegExp]>([
  ['a chunk with a wrong checksum', [chunk(0, first, { crc32: 1 })], /chunk 0 is damaged/],
  [
    'a wrong checksum of the whole snapshot',
    [chunk(0, second), chunk(1, first)],
    /checksum mismatch/,
  ],
  ['a skipped chunk', [chunk(0, first), chunk(2, second)], /received chunk 2, expected 1/],
  ['a chunk that is too large', [chunk(0, new Uint8Array(101))], /chunk 0 is too large/],
  ['an empty chunk', [chunk(0, first), chunk(1, bytes(''))], /chunk 1 is empty/],
  [
    'a chunk after the last one',
    [chunk(0, first), chunk(1, second), chunk(2, second)],
    /after the last one/,
  ],
  [
    'more data than requested',
    [chunk(0, new Uint8Array(100)), chunk(1, new Uint8Array(100), { last: false })],
    /received more than was requested/,
  ],
])(
  'a snapshot transfer is aborted, and the sender is informed, because of %s',
  (_name, chunks, reason) => {
    const { made, acks, failures, events } = receiver()
    for (const each of chunks) made.onChunk('leader', 3, each)
    expect(failures).toEqual([expect.stringMatching(reason)])
    expect(acks.at(-1)).toMatchObject({ failed: true })
    expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
    made.onChunk('leader', 3, chunk(1, second))
    expect(acks.at(-1)).toMatchObject({ failed: true })
    expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
  },
)

test.each<[string, SnapshotChunk, string, number]>([
  ['of an older term', chunk(1, second), 'leader', 2],
  [
    'from a sender that is not the leader',
    chunk(0, first, { snapshotId: bytes('b'.repeat(16)) }),
    'b',
    3,
  ],
  ['of another snapshot', chunk(1, second, { snapshotId: new Uint8Array(16) }), 'leader', 3],
  ['of the same snapshot from another sender', chunk(1, second), 'another', 4],
])('a snapshot chunk %s is refused and changes nothing', (_name, stray, from, term) => {
  const { made, acks, events, received, finish } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  const before = events.length
  made.onChunk(from, term, stray)
  expect(acks.at(-1)).toMatchObject({ failed: true })
  expect(events.length).toBe(before)
  made.onChunk('leader', 3, chunk(1, second))
  finish()
  expect(received.length).toBe(1)
})

test.each<[string, Partial<SnapshotChunk>]>([
  ['an unreadable configuration', { configuration: bytes('nonsense') }],
  ['a configuration without voters', { configuration: new Uint8Array(0) }],
  ['no position', { position: create(PositionSchema) }],
  ['an id of the wrong length', { snapshotId: snapshotId.subarray(1) }],
  ['a first chunk that is not chunk 0', { number: 1 }],
])('a snapshot transfer cannot start with %s', (_name, changes) => {
  const { made, acks, events } = receiver()
  made.onChunk('leader', 3, chunk(0, first, changes))
  expect(acks).toMatchObject([{ failed: true }])
  expect(events).toEqual([])
})

test('a snapshot whose state differs from the announced state is not offered to the Raft core', () => {
  const { made, received, failures } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onChunk('leader', 3, chunk(1, second))
  made.onWritten(1)
  made.onWritten(1)
  made.onFinished(1, { term: 2, index: 51 }, configuration)
  expect(received).toEqual([])
  expect(failures).toEqual([expect.stringContaining('announcement')])
})

test('a snapshot is not offered to the Raft core if its sender is not the leader in the term of the snapshot', () => {
  const { made, received, failures, leadership, finish } = receiver()
  leadership.leader = null
  made.onChunk('usurper', 3, chunk(0, first))
  made.onChunk('usurper', 3, chunk(1, second))
  leadership.leader = 'leader'
  finish()
  expect(received).toEqual([])
  expect(failures).toEqual(['the sender is not the leader'])
})

test('a snapshot that the Raft core ignores is discarded, and its transfer ends', () => {
  const { made, events, acks, finish } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onChunk('leader', 3, chunk(1, second))
  finish()
  made.dropIfPassedOver(49)
  expect(acks.length).toBe(1)
  made.dropIfPassedOver(50)
  expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
  expect(acks.at(-1)).toMatchObject({ number: 2, failed: false })
})

test('an offered snapshot is kept, and is offered again until the Raft core accepts the snapshot', () => {
  const { made, clock, events, acks, received, leadership, finish } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onChunk('leader', 3, chunk(1, second))
  finish()
  leadership.term = 4
  leadership.leader = 'next'
  made.onChunk('next', 4, chunk(0, first, { snapshotId: bytes('another snapshot') }))
  expect(acks.at(-1)).toMatchObject({ failed: true })
  made.sweep()
  expect(received.length).toBe(1)
  clock.atMs = 1000
  made.sweep()
  expect(received.length).toBe(2)
  void made.restore({ term: 2, index: 50 })
  expect(events.at(-1)).toEqual({ type: 'restore', id: 1 })
  clock.atMs = 2000
  made.sweep()
  expect(received.length).toBe(2)
})

test('the receiver skips snapshot chunks that the leader repeats, and acknowledges again how many chunks it has written', () => {
  const { made, events, acks, received, finish } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onWritten(1)
  const before = events.length
  made.onChunk('leader', 3, chunk(0, first))
  expect(acks.at(-1)).toMatchObject({ number: 1, failed: false })
  expect(events.length).toBe(before)
  made.onChunk('leader', 3, chunk(1, second))
  made.onChunk('leader', 3, chunk(1, second))
  // The last chunk is acknowledged only when the snapshot is installed.
  expect(acks.at(-1)).toMatchObject({ number: 1, failed: false })
  finish()
  expect(received.length).toBe(1)
})

test('the acknowledgment of a snapshot chunk is repeated on the next connection', async () => {
  const { made, acks, finish } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  made.onWritten(1)
  acks.length = 0
  made.onLinkReady('another')
  expect(acks).toEqual([])
  made.onLinkReady('leader')
  expect(acks).toMatchObject([{ number: 1, failed: false }])
  made.onChunk('leader', 3, chunk(1, second))
  finish()
  const restored = made.restore({ term: 2, index: 50 })
  made.onRestored(1)
  await restored
  acks.length = 0
  made.onLinkReady('leader')
  made.onChunk('leader', 3, chunk(1, second))
  expect(acks).toMatchObject([
    { number: 2, failed: false },
    { number: 2, failed: false },
  ])
})

test('an incomplete snapshot is kept for a limited time if its sender is silent', () => {
  const { made, clock, events, failures } = receiver()
  made.onChunk('leader', 3, chunk(0, first))
  clock.atMs = 1000
  made.sweep()
  expect(failures).toEqual([])
  clock.atMs = 1001
  made.sweep()
  expect(failures).toEqual(['the sender timed out'])
  expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
})

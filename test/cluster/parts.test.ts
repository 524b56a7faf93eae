import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { PositionSchema, SnapshotChunkSchema } from '../../proto/gen/mesh_pb.ts'
import type { ForwardFrame, SnapshotAck, SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import { DigestRing } from '../../src/cluster/digest-ring.ts'
import { Forwarding } from '../../src/cluster/forwarding.ts'
import type { HostEvent } from '../../src/cluster/link.ts'
import { LogRetention } from '../../src/cluster/log-retention.ts'
import { LogThrottle } from '../../src/cluster/log.ts'
import { decodeRaft, integer, MessageEncoder } from '../../src/cluster/message-codec.ts'
import { OutstandingProposals } from '../../src/cluster/outstanding.ts'
import type { OutstandingProposal } from '../../src/cluster/outstanding.ts'
import { packProposals, unpackProposals } from '../../src/cluster/proposal-codec.ts'
import { ReadRounds } from '../../src/cluster/read-rounds.ts'
import { SnapshotReceiver } from '../../src/cluster/snapshot-receiver.ts'
import type { ReceivedSnapshot } from '../../src/cluster/snapshot-receiver.ts'
import { SnapshotSender } from '../../src/cluster/snapshot-sender.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { Problem } from '../../src/lib/problems.ts'
import type { Entry, Message } from '../../src/raft/types.ts'

class ManualClock implements Clock {
  atMs = 0
  nowMs(): number {
    return this.atMs
  }
  monotonicMs(): number {
    return this.atMs
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function entry(index: number, term = 1, text = `entry ${index}`): Entry {
  return { index, term, timeMs: index, type: 'command', data: bytes(text) }
}

test('every Raft message comes back from its frame as it was', () => {
  const encoder = new MessageEncoder()
  const envelope = { from: 'a', to: 'b', term: 7 }
  const at = { term: 6, index: Number.MAX_SAFE_INTEGER - 9 }
  const messages: Message[] = [
    { ...envelope, type: 'voteRequest', pre: true, last: at, transfer: false },
    { ...envelope, type: 'voteRequest', pre: false, last: at, transfer: true },
    { ...envelope, type: 'voteResponse', pre: true, granted: false },
    { ...envelope, type: 'voteResponse', pre: false, granted: true },
    { ...envelope, type: 'appendRequest', previous: at, commit: 3, entries: [] },
    {
      ...envelope,
      type: 'appendRequest',
      previous: { term: 1, index: 4 },
      commit: 4,
      entries: [entry(5), entry(6, 2), { ...entry(7, 2), type: 'noop', data: new Uint8Array(0) }],
    },
    {
      ...envelope,
      type: 'appendResponse',
      success: false,
      matchIndex: 0,
      hint: at,
      rejectedIndex: 9,
    },
    { ...envelope, type: 'heartbeatRequest', commit: 8, readSequence: 9 },
    { ...envelope, type: 'heartbeatResponse', readSequence: 9, clockMs: 1_700_000_000_000 },
    { ...envelope, type: 'commitNotice', commit: 8 },
    { ...envelope, type: 'timeoutNow' },
  ]
  for (const message of messages) {
    const decoded = decodeRaft(encoder.encode(message), 'a', 'b')
    expect(decoded).toEqual({ kind: 'message', message })
  }
})

test('the packing that is kept is used for the same entries only', () => {
  const encoder = new MessageEncoder()
  const send = (entries: readonly Entry[]) => {
    const previous = { term: 1, index: (entries[0]?.index ?? 1) - 1 }
    const message: Message = {
      type: 'appendRequest',
      previous,
      commit: 0,
      entries,
      from: 'a',
      to: 'b',
      term: 9,
    }
    expect(decodeRaft(encoder.encode(message), 'a', 'b')).toEqual({ kind: 'message', message })
  }
  send([entry(5), entry(6)])
  send([entry(5), entry(6)])
  send([entry(6)])
  send([entry(5), entry(6), entry(7)])
  // The same indexes again, of a later term, after the first were replaced.
  send([entry(5), entry(6, 2, 'other')])
})

test('a number beyond a safe integer is refused at the edge', () => {
  expect(integer(BigInt(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
  expect(() => integer(BigInt(Number.MAX_SAFE_INTEGER) + 1n)).toThrow(RangeError)
})

test('packed proposals come back as they were', () => {
  const proposals = [
    { sequence: 1, command: bytes('one') },
    { sequence: Number.MAX_SAFE_INTEGER, command: new Uint8Array(0) },
    { sequence: 3, command: bytes('x'.repeat(1000)) },
  ]
  expect(unpackProposals(packProposals(proposals))).toEqual(proposals)
  expect(unpackProposals(packProposals([]))).toEqual([])
  expect(() => unpackProposals(packProposals(proposals).subarray(0, 20))).toThrow()
})

function outstanding(countMax = 100, spanMax = 100, bytesMax = 1000) {
  const window = new OutstandingProposals({ countMax, spanMax, bytesMax })
  const ended: (readonly [number, string])[] = []
  const add = (changes: Partial<OutstandingProposal> = {}): OutstandingProposal => {
    const sequence = window.nextSequence
    const proposal: OutstandingProposal = {
      sequence,
      command: new Uint8Array(0),
      deadlineMs: sequence * 10,
      resolve: () => ended.push([sequence, 'resolved']),
      reject: (problem: Problem) => ended.push([sequence, problem.code]),
      stage: 'queued',
      isFateOpen: false,
      lastRefusal: null,
      ...changes,
    }
    window.add(proposal)
    return proposal
  }
  return { window, ended, add }
}

test('a proposal past its deadline is called what is certain about it', () => {
  const { window, ended, add } = outstanding()
  add()
  add({ stage: 'sent' })
  add({ stage: 'parked', lastRefusal: 'NOT_LEADER' })
  add({ stage: 'parked', lastRefusal: 'OVERLOADED' })
  add({ stage: 'parked', lastRefusal: 'NOT_LEADER', isFateOpen: true })
  add()
  window.expire(50)
  expect(ended).toEqual([
    [1, 'CLUSTER_NO_LEADER'],
    [2, 'OUTCOME_UNKNOWN'],
    [3, 'CLUSTER_NO_LEADER'],
    [4, 'SERVER_TOO_MANY_REQUESTS'],
    [5, 'OUTCOME_UNKNOWN'],
  ])
  expect(window.lowest).toBe(6)
})

test('once an attempt may be lost, no refusal of a later one makes its outcome certain', () => {
  const { window, ended, add } = outstanding()
  const proposal = add({ stage: 'sent' })
  expect(window.parkSent()).toBe(true)
  proposal.stage = 'sent'
  proposal.stage = 'parked'
  proposal.lastRefusal = 'NOT_LEADER'
  window.expire(1000)
  expect(ended).toEqual([[1, 'OUTCOME_UNKNOWN']])
})

test('the lowest outstanding sequence stays until it is done, and the span is bounded by it', () => {
  const { window, add } = outstanding(100, 5)
  for (let i = 0; i < 5; i += 1) add()
  expect(window.isFull).toBe(true)
  for (const sequence of [2, 3, 4, 5]) window.remove(sequence)
  expect(window.lowest).toBe(1)
  expect(window.isFull).toBe(true)
  window.remove(1)
  expect(window.lowest).toBe(6)
  expect(window.isFull).toBe(false)
})

test('the bytes of outstanding commands are bounded, and what is done makes room', () => {
  const { window, add } = outstanding(100, 100, 1000)
  const command = new Uint8Array(500)
  add({ command })
  expect(window.isFull).toBe(false)
  add({ command })
  expect(window.isFull).toBe(true)
  window.remove(1)
  window.remove(1)
  expect(window.isFull).toBe(false)
  add({ command })
  expect(window.isFull).toBe(true)
})

test('of a few large entries no more is kept than of many small ones', () => {
  const retention = new LogRetention({ entries: 1000, bytes: 1_000_000 })
  for (let i = 1; i <= 100; i += 1) {
    retention.note({ ...entry(i), data: new Uint8Array(100_000) })
  }
  expect(retention.cut(50, Infinity)).toEqual({ term: 1, index: 50 })
  expect(retention.cut(100, 1)).toEqual({ term: 1, index: 90 })
})

test('the log is cut below what is persisted, keeping the last entries, and more for a slow peer', () => {
  const retention = new LogRetention({ entries: 1000, bytes: 1_000_000 })
  for (let i = 1; i <= 10_000; i += 1) retention.note(entry(i))
  expect(retention.cut(2000, Infinity)).toEqual({ term: 1, index: 1792 })
  expect(retention.cut(2000, Infinity)).toBeNull()
  expect(retention.cut(9999, 3000)).toEqual({ term: 1, index: 2816 })
  expect(retention.cut(9999, Infinity)).toEqual({ term: 1, index: 8960 })
})

test('a slow peer holds back no more bytes than allowed', () => {
  const retention = new LogRetention({ entries: 10, bytes: 100_000 })
  for (let i = 1; i <= 10_000; i += 1) retention.note(entry(i))
  const cut = retention.cut(9999, 1)
  // About 42 bytes an entry: some 2,400 of them fit.
  expect(cut?.index).toBeGreaterThan(7000)
  expect(cut?.index).toBeLessThan(8000)
})

test('digests are compared at one index, also when the peer is ahead', () => {
  const ring = new DigestRing()
  ring.record(64, 'aa')
  expect(ring.compare('p', 64, 'aa', 64)).toBeNull()
  expect(ring.compare('p', 64, 'bb', 64)).toBe(64)
  expect(ring.compare('q', 128, 'bb', 64)).toBeNull()
  ring.record(128, 'aa')
  expect(ring.compare('q', 192, 'cc', 128)).toBe(128)
  expect(ring.compare('r', 0, '', 128)).toBeNull()
  expect(ring.compare('r', 32, 'zz', 128)).toBeNull()
})

test('a line is let through once per key and window', () => {
  const throttle = new LogThrottle({ windowMs: 100, keysMax: 2 })
  expect([throttle.allow('a', 0), throttle.allow('a', 99), throttle.allow('a', 100)]).toEqual([
    true,
    false,
    true,
  ])
  expect([throttle.allow('b', 100), throttle.allow('c', 100)]).toEqual([true, true])
  // The oldest was forgotten, as the memory is bounded.
  expect(throttle.allow('a', 101)).toBe(true)
})

test('readers of one turn share a round, and a later one gets its own', async () => {
  const asked: number[] = []
  const clock = new ManualClock()
  const rounds = new ReadRounds({ clock, timeoutMs: 100, ask: (id) => asked.push(id) })
  const turn = async () => await new Promise((resolve) => setImmediate(resolve))
  const first = [rounds.read(), rounds.read(), rounds.read()]
  await turn()
  const second = rounds.read()
  await turn()
  expect(asked).toEqual([1, 2])
  rounds.answer(2, 20)
  rounds.answer(1, 10)
  expect(await Promise.all([...first, second])).toEqual([10, 10, 10, 20])
})

test('a refused round is asked again until the readers have waited long enough', async () => {
  const asked: number[] = []
  const clock = new ManualClock()
  const rounds = new ReadRounds({ clock, timeoutMs: 100, ask: (id) => asked.push(id) })
  const turn = async () => await new Promise((resolve) => setImmediate(resolve))
  const early = rounds.read()
  await turn()
  rounds.answer(1, null)
  clock.atMs = 60
  const late = rounds.read()
  await turn()
  clock.atMs = 110
  rounds.sweep()
  await expect(early).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
  rounds.answer(2, 7)
  expect(await late).toBe(7)
  expect(asked).toEqual([1, 2])
})

function forwarding(leader: string | null) {
  const events: HostEvent[] = []
  const proposed: number[] = []
  const reads: number[] = []
  const answers: (readonly [string, ForwardFrame['frame']])[] = []
  const forwarded: ForwardFrame['frame'][] = []
  const state = { leader, isReachable: true }
  const made = new Forwarding({
    selfId: 'me',
    target: {
      propose: (proposals) => proposed.push(...proposals.map(({ id }) => id)),
      read: (id) => reads.push(id),
    },
    leader: () => state.leader,
    forward: (_to, frame) => {
      if (state.isReachable) forwarded.push(frame)
      return state.isReachable
    },
    answer: (to, frame) => answers.push([to, frame]),
    post: (event) => events.push(event),
  })
  return { made, state, events, proposed, reads, answers, forwarded }
}

const two = [
  { sequence: 5, command: bytes('five') },
  { sequence: 6, command: bytes('six') },
]

test('proposals go to the node that leads, and a refusal goes back to whoever asked', () => {
  const { made, events, proposed, answers } = forwarding('me')
  made.proposeFromMain(two)
  expect(proposed).toEqual([1, 2])
  made.onProposed(1, null)
  made.onProposed(2, 'OVERLOADED')
  expect(events).toEqual([{ type: 'refused', sequences: [6], code: 'OVERLOADED' }])
  made.onFrame('peer', proposeFrame(), false)
  made.onProposed(3, 'NOT_LEADER')
  expect(answers).toMatchObject([
    ['peer', { case: 'refused', value: { sequence: 9n, code: 'NOT_LEADER', leaderHint: 'me' } }],
  ])
})

function proposeFrame(): ForwardFrame['frame'] {
  const { forwarded, made } = forwarding('other')
  made.proposeFromMain([{ sequence: 9, command: bytes('nine') }])
  const [frame] = forwarded
  if (frame === undefined) throw new Error('nothing was forwarded')
  return frame
}

test('one that does not lead refuses what is forwarded to it, and asks nobody else', () => {
  const { made, answers, forwarded, proposed } = forwarding('other')
  made.onFrame('peer', proposeFrame(), false)
  expect(answers).toMatchObject([
    ['peer', { case: 'refused', value: { sequence: 9n, code: 'NOT_LEADER', leaderHint: 'other' } }],
  ])
  expect([forwarded, proposed]).toEqual([[], []])
})

test('an unreachable leader, or none, refuses at once; a lost connection leaves the fate open', () => {
  const { made, state, events } = forwarding(null)
  made.proposeFromMain(two)
  state.leader = 'other'
  state.isReachable = false
  made.proposeFromMain(two)
  const refusal = { type: 'refused', sequences: [5, 6], code: 'NO_LEADER' }
  expect(events).toEqual([refusal, refusal])
  state.isReachable = true
  made.proposeFromMain(two)
  made.readFromMain(1)
  made.onLinkLost('a third')
  expect(events.length).toBe(2)
  made.onLinkLost('other')
  expect(events.slice(2)).toEqual([
    { type: 'handoverLost' },
    { type: 'readIndex', id: 1, index: null },
  ])
})

test('a large batch is spread over frames that the mesh takes', () => {
  const { made, forwarded } = forwarding('other')
  const command = new Uint8Array(400_000)
  made.proposeFromMain([1, 2, 3, 4, 5].map((sequence) => ({ sequence, command })))
  expect(forwarded.length).toBe(3)
})

const snapshotId = Uint8Array.from(Array(16).keys())
const whole = bytes('first-second-')
const configuration = bytes('configuration')

function chunk(
  number: number,
  data: Uint8Array,
  changes: { crc32?: number; snapshotId?: Uint8Array } = {},
): SnapshotChunk {
  const isLast = number === 1
  const made = create(SnapshotChunkSchema, { snapshotId, number, data, last: isLast })
  made.crc32 = changes.crc32 ?? crc32(data)
  made.snapshotId = changes.snapshotId ?? snapshotId
  if (number === 0) {
    made.position = create(PositionSchema, { term: 2n, index: 50n })
    made.configuration = configuration
  }
  if (isLast) made.sha256 = Uint8Array.from(createHash('sha256').update(whole).digest())
  return made
}

function receiver() {
  const events: HostEvent[] = []
  const acks: SnapshotAck[] = []
  const received: ReceivedSnapshot[] = []
  const failures: string[] = []
  const made = new SnapshotReceiver({
    post: (event) => events.push(event),
    send: (_to, _term, ack) => acks.push(ack),
    onReceived: (snapshot) => received.push(snapshot),
    onFailed: (_from, because) => failures.push(because),
  })
  return { made, events, acks, received, failures }
}

const first = bytes('first-')
const second = bytes('second-')

test('a snapshot is offered to the core only when whole, written and what it was announced to be', async () => {
  const { made, events, acks, received } = receiver()
  made.onChunk('leader', 3, chunk(0, first), 3)
  made.onChunk('leader', 3, chunk(1, second), 3)
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

test.each([
  ['a chunk whose checksum is wrong', [chunk(0, first, { crc32: 1 })], /damaged/],
  ['a whole that is not what was hashed', [chunk(0, second), chunk(1, first)], /checksum/],
])('a snapshot is given up, and the sender told, at %s', (_name, chunks, because) => {
  const { made, acks, failures, events } = receiver()
  for (const each of chunks) made.onChunk('leader', 3, each, 3)
  expect(failures).toEqual([expect.stringMatching(because)])
  expect(acks.at(-1)).toMatchObject({ failed: true })
  expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
})

test.each([
  ['of an older term', chunk(0, first), 'leader', 2],
  ['that skips one', chunk(2, first), 'leader', 3],
  ['of another snapshot', chunk(1, second, { snapshotId: new Uint8Array(16) }), 'leader', 3],
  ['of another sender', chunk(1, second), 'another', 3],
])('a chunk %s is refused and changes nothing', (_name, stray, from, term) => {
  const { made, acks, events, received } = receiver()
  made.onChunk('leader', 3, chunk(0, first), 3)
  const before = events.length
  made.onChunk(from, term, stray, 3)
  expect(acks.at(-1)).toMatchObject({ failed: true })
  expect(events.length).toBe(before)
  made.onChunk('leader', 3, chunk(1, second), 3)
  made.onWritten(1)
  made.onWritten(1)
  made.onFinished(1, { term: 2, index: 50 }, configuration)
  expect(received.length).toBe(1)
})

test('a snapshot that holds another state than announced is not offered', () => {
  const { made, received, failures } = receiver()
  made.onChunk('leader', 3, chunk(0, first), 3)
  made.onChunk('leader', 3, chunk(1, second), 3)
  made.onWritten(1)
  made.onWritten(1)
  made.onFinished(1, { term: 2, index: 51 }, configuration)
  expect(received).toEqual([])
  expect(failures).toEqual([expect.stringContaining('announced')])
})

test('a snapshot that the core passes over is dropped, and the sender is done', () => {
  const { made, events, acks } = receiver()
  made.onChunk('leader', 3, chunk(0, first), 3)
  made.onChunk('leader', 3, chunk(1, second), 3)
  made.onWritten(1)
  made.onWritten(1)
  made.onFinished(1, { term: 2, index: 50 }, configuration)
  made.dropIfPassedOver(49)
  expect(acks.length).toBe(1)
  made.dropIfPassedOver(50)
  expect(events.at(-1)).toEqual({ type: 'receiveAbandoned', id: 1 })
  expect(acks.at(-1)).toMatchObject({ number: 2, failed: false })
})

function sender(windowChunks = 2, bytesPerSecond = Infinity) {
  const events: HostEvent[] = []
  const chunks: SnapshotChunk[] = []
  const done: (readonly [string, string])[] = []
  const clock = new ManualClock()
  const state = { isReachable: true }
  const made = new SnapshotSender(
    { windowChunks, stallMsMax: 1000, bytesPerSecond },
    {
      clock,
      post: (event) => events.push(event),
      send: (_to, _term, sent) => {
        chunks.push(sent)
        return state.isReachable
      },
      onDone: (to, outcome) => done.push([to, outcome]),
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
  return { made, events, chunks, done, clock, state, acknowledge, credits }
}

test('a snapshot is read no faster than its receiver writes', () => {
  const { made, chunks, done, events, acknowledge, credits } = sender()
  made.start('slow', 4)
  made.start('slow', 4)
  expect(events).toEqual([{ type: 'snapshotWanted', id: 1, to: 'slow' }])
  made.onOpened(1, { term: 2, index: 50 }, configuration)
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

test.each(['refused', 'silent', 'unreachable', 'link lost', 'leadership lost', 'source'])(
  'a transfer ends, and is reported once, when: %s',
  (how) => {
    const { made, done, clock, state, acknowledge, events } = sender()
    made.start('slow', 4)
    made.onOpened(1, { term: 2, index: 50 }, configuration)
    made.onChunk(1, first, false)
    if (how === 'refused') acknowledge(0, true)
    if (how === 'link lost') made.onLinkLost('slow')
    if (how === 'leadership lost') made.abandonOtherThan(5)
    if (how === 'source') made.onSourceFailed(1, 'disk')
    if (how === 'silent') {
      clock.atMs = 1001
      made.sweep()
    }
    if (how === 'unreachable') {
      state.isReachable = false
      made.onChunk(1, second, false)
    }
    expect(done).toEqual([['slow', 'failed']])
    expect(events.at(-1)).toEqual({ type: 'snapshotOver', id: 1 })
    acknowledge(1)
    made.onLinkLost('slow')
    expect(done.length).toBe(1)
  },
)

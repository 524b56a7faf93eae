import { expect, test } from 'vitest'

import type { ForwardFrame } from '../../proto/gen/mesh_pb.ts'
import { DigestRing } from '../../src/cluster/state-transfer/digest-ring.ts'
import { LeaderForwarder } from '../../src/cluster/replication/leader-forwarder.ts'
import type { ConsensusThreadEvent } from '../../src/cluster/thread-channel.ts'
import { LogThrottle } from '../../src/cluster/logger.ts'
import { decodeRaftFrame, toSafeInteger, MessageEncoder } from '../../src/cluster/message-codec.ts'
import {
  type OutstandingProposal,
  OutstandingProposals,
} from '../../src/cluster/replication/outstanding-proposals.ts'
import { packProposals, unpackProposals } from '../../src/cluster/replication/proposal-codec.ts'
import { ReadIndexRounds } from '../../src/cluster/replication/read-index-rounds.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { Problem } from '../../src/lib/problems.ts'
import { encodeTrace, parseTraceparent } from '../../src/lib/trace-context.ts'
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

test('every Raft message is the same after encoding and decoding', () => {
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
    {
      ...envelope,
      type: 'appendResponse',
      success: false,
      matchIndex: 0,
      hint: at,
      rejectedIndex: 9,
      hasLost: true,
    },
    { ...envelope, type: 'heartbeatRequest', commit: 8, readSequence: 9 },
    {
      ...envelope,
      type: 'heartbeatRequest',
      commit: 8,
      readSequence: 9,
      attested: { boot: 3, lastIndex: 77 },
    },
    { ...envelope, type: 'heartbeatResponse', readSequence: 9, clockMs: 1_700_000_000_000 },
    { ...envelope, type: 'heartbeatResponse', readSequence: 9, clockMs: 1, owingBoot: 4 },
    { ...envelope, type: 'commitNotice', commit: 8 },
    { ...envelope, type: 'timeoutNow' },
  ]
  for (const message of messages) {
    const decoded = decodeRaftFrame(encoder.encode(message), 'a', 'b')
    expect(decoded).toEqual({ kind: 'message', message })
  }
})

test('the cached encoding of packed entries is reused only for the same entries', () => {
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
    expect(decodeRaftFrame(encoder.encode(message), 'a', 'b')).toEqual({ kind: 'message', message })
  }
  send([entry(5), entry(6)])
  send([entry(5), entry(6)])
  send([entry(6)])
  send([entry(5), entry(6), entry(7)])
  // The same indexes with a later term, after the first entries were replaced.
  send([entry(5), entry(6, 2, 'other')])
})

test('a number that is not a safe integer is rejected during decoding', () => {
  expect(toSafeInteger(BigInt(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
  expect(() => toSafeInteger(BigInt(Number.MAX_SAFE_INTEGER) + 1n)).toThrow(RangeError)
})

test('packed proposals are unpacked without changes', () => {
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
      caller: '',
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

test('a proposal that reaches its time limit fails with OUTCOME_UNKNOWN only if it may have been logged', () => {
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

test('the outcome of a proposal is unknown once one attempt may have been lost, even if a later attempt is refused', () => {
  const { window, ended, add } = outstanding()
  const proposal = add({ stage: 'sent' })
  expect(window.parkSent()).toBe(true)
  proposal.stage = 'sent'
  proposal.stage = 'parked'
  proposal.lastRefusal = 'NOT_LEADER'
  window.expire(1000)
  expect(ended).toEqual([[1, 'OUTCOME_UNKNOWN']])
})

test('the lowest outstanding sequence number advances only when its proposal is done, and limits how far later numbers may be ahead', () => {
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

test('one caller cannot fill the proposal queue by count or bytes, and proposals of the controller itself have no such limit', () => {
  for (const [window, add] of [
    [outstanding(8, 100, 1000), { caller: 'eager' }],
    [outstanding(100, 100, 80), { caller: 'eager', command: new Uint8Array(10) }],
  ].map(([made, changes]) => {
    const { window, add } = made as ReturnType<typeof outstanding>
    return [window, () => add(changes as Partial<OutstandingProposal>)] as const
  })) {
    while (window.hasRoomFor('eager')) add()
    expect(window.count).toBe(6)
    expect(window.hasRoomFor('other')).toBe(true)
    expect(window.hasRoomFor('')).toBe(true)
    window.remove(1)
    window.remove(2)
    expect(window.hasRoomFor('eager')).toBe(true)
  }
})

test('the bytes of outstanding commands are limited, and completed commands free their bytes', () => {
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

test('digests of two states are compared at the same index, even if the peer is ahead', () => {
  const ring = new DigestRing()
  ring.record(64, 'aa')
  expect(ring.compare('p', 64, 'aa', 64)).toEqual({ index: 64, isSame: true })
  expect(ring.compare('p', 64, 'bb', 64)).toEqual({ index: 64, isSame: false })
  expect(ring.compare('q', 128, 'bb', 64)).toBeNull()
  ring.record(128, 'aa')
  expect(ring.compare('q', 192, 'cc', 128)).toEqual({ index: 128, isSame: false })
  expect(ring.compare('r', 0, '', 128)).toBeNull()
  expect(ring.compare('r', 32, 'zz', 128)).toBeNull()
})

test('the digest of a state that has been replaced is not compared', () => {
  const ring = new DigestRing()
  ring.record(64, 'aa')
  ring.compare('p', 128, 'bb', 64)
  ring.forget('p')
  ring.record(128, 'aa')
  expect(ring.compare('p', 128, '', 128)).toBeNull()
  ring.compare('p', 192, 'bb', 128)
  ring.clear()
  expect([ring.at(64), ring.at(128)]).toEqual([null, null])
  ring.record(192, 'aa')
  expect(ring.compare('p', 0, '', 192)).toBeNull()
  expect(ring.at(192)).toBe('aa')
})

test('a log throttle allows one line per key and time window', () => {
  const throttle = new LogThrottle({ windowMs: 100, keysMax: 2 })
  expect([throttle.allow('a', 0), throttle.allow('a', 99), throttle.allow('a', 100)]).toEqual([
    true,
    false,
    true,
  ])
  expect([throttle.allow('b', 100), throttle.allow('c', 100)]).toEqual([true, true])
  // The limiter has evicted the oldest key, because its memory is limited.
  expect(throttle.allow('a', 101)).toBe(true)
})

test('reads in one event loop turn share one read index request, and a later read starts another one', async () => {
  const asked: number[] = []
  const clock = new ManualClock()
  const rounds = new ReadIndexRounds({ clock, timeoutMs: 100, ask: (id) => asked.push(id) })
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

test('a read index request that is refused is repeated until the readers time out', async () => {
  const asked: number[] = []
  const clock = new ManualClock()
  const rounds = new ReadIndexRounds({ clock, timeoutMs: 100, ask: (id) => asked.push(id) })
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
  const events: ConsensusThreadEvent[] = []
  const proposed: number[] = []
  const reads: number[] = []
  const answers: (readonly [string, ForwardFrame['frame']])[] = []
  const forwarded: ForwardFrame['frame'][] = []
  const state = { leader, isReachable: true }
  const made = new LeaderForwarder({
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

test('a leader proposes its own writes and those of a follower, and returns each refusal to the sender of the write', () => {
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

test('the trace context of a write is forwarded with the write, and appears in the log where the write is proposed', () => {
  const { forwarded, made: follower } = forwarding('other')
  const trace = encodeTrace(parseTraceparent(`00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`))
  const [first, second] = two
  const written = packProposals([
    { ...requirePresent(first, 'one'), trace },
    requirePresent(second, 'two'),
  ])
  follower.proposeFromMain(unpackProposals(written))
  const leader = forwarding('me')
  leader.made.onFrame('peer', requirePresent(forwarded[0], 'a frame'), false)
  expect(leader.proposed).toEqual([1, 2])
  const parentSpanId = Buffer.from(trace.slice(16)).toString('hex')
  expect(leader.events).toMatchObject([
    { type: 'log', fields: { peer: 'peer', traceId: 'a1'.repeat(16), parentSpanId } },
  ])
})

test('a follower refuses proposals that another follower forwards to it, and does not forward them again', () => {
  const { made, answers, forwarded, proposed } = forwarding('other')
  made.onFrame('peer', proposeFrame(), false)
  expect(answers).toMatchObject([
    ['peer', { case: 'refused', value: { sequence: 9n, code: 'NOT_LEADER', leaderHint: 'other' } }],
  ])
  expect([forwarded, proposed]).toEqual([[], []])
})

test('without a reachable leader proposals are refused immediately, and proposals on a lost connection have an unknown outcome', () => {
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

test('a large batch of proposals is split over several frames', () => {
  const { made, forwarded } = forwarding('other')
  const command = new Uint8Array(400_000)
  made.proposeFromMain([1, 2, 3, 4, 5].map((sequence) => ({ sequence, command })))
  expect(forwarded.length).toBe(3)
})

// Goal: FlotillaRaft.tla permits everything that the cores do, in virtual time under faults and
// over gRPC in real time. Method: every step of every core is recorded from outside, and the
// TypeScript equivalent of the TLA+ module checks it event by event; `make traces` lets TLC do the
// same. Runs with a changed vote, entry or report must not pass.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/lib/random.ts'
import { checkTrace } from './check.ts'
import { mutants } from './mutants.ts'
import { recordHosts, recordSimulation } from './record.ts'
import type { HeardAction, Trace, TraceEvent } from './trace-event.ts'

const RUN_MS = 3_500
/** Seeds of runs without faults, with crashes, membership changes and snapshots. */
const SEEDS = [2, 3, 7, 13, 28, 33, 37, 39]

function withEvent(trace: Trace, at: number, event: TraceEvent): Trace {
  return { ...trace, events: trace.events.with(at, event) }
}

test('the TLA+ specification accepts every step of simulated Raft cores under faults', async () => {
  const seen = new Set<string>()
  for (const seed of SEEDS) {
    const { trace, failure } = await recordSimulation(seed, RUN_MS)
    expect(failure).toBeNull()
    expect(checkTrace(trace), `seed ${seed}`).toBeNull()
    for (const { action } of trace.events) seen.add(action)
  }
  // A run without events would pass every check, so the test requires these events.
  expect([...seen]).toEqual(
    expect.arrayContaining([
      'Restart',
      'AdvanceCommitIndex',
      'ChangeConfiguration',
      'LeaveJoint',
      'InstallSnapshot',
    ]),
  )
})

test('the TLA+ specification accepts a run of three hosts over gRPC whose leader fails and returns', async () => {
  const { trace, failure } = await recordHosts(20)
  expect(failure).toBeNull()
  expect(checkTrace(trace)).toBeNull()
  expect(trace.events.some(({ action }) => action === 'AdvanceCommitIndex')).toBe(true)
})

test('two Raft simulations with the same seed record the same trace', async () => {
  const [one, again] = [await recordSimulation(2, 2_000), await recordSimulation(2, 2_000)]
  expect(again.trace).toEqual(one.trace)
})

test('the TLA+ specification rejects a trace that lacks one event on which later events depend', async () => {
  const { trace } = await recordSimulation(2, RUN_MS)
  const random = seededRandom(1)
  // Later events reveal a change of the term, the log or the disk; nothing reveals a change of a
  // lost or last event.
  const needed = ['UpdateTerm', 'BecomeLeader', 'ClientRequest', 'Write', 'AdvanceCommitIndex']
  const places = [...trace.events.keys()].filter((at) =>
    needed.includes(trace.events[at]?.action ?? ''),
  )
  for (let draw = 0; draw < 20; draw += 1) {
    const at = places[random.integer(0, places.length - 20)] ?? 0
    const events = trace.events.toSpliced(at, 1)
    expect(checkTrace({ ...trace, events }), `without event ${at + 1}`).not.toBeNull()
  }
})

test('the trace checker reports a vote that was not granted, a commit without a majority, and a promise sent before its write was durable', async () => {
  const { trace } = await recordSimulation(2, RUN_MS)
  const vote = trace.events.findLastIndex(({ action }) => action === 'HandleRequestVoteResponse')
  const response = trace.events[vote] as HeardAction & TraceEvent
  const forged = { ...response, message: { ...response.message, msource: 'n9/1' } }
  expect(checkTrace(withEvent(trace, vote, forged))).toMatchObject({
    number: vote + 1,
    reason: 'the message was sent',
  })
  const commit = trace.events.findLastIndex(
    (event) => event.action === 'AdvanceCommitIndex' && event.index < (event.after?.lastIndex ?? 0),
  )
  const advance = trace.events[commit] as Extract<TraceEvent, { action: 'AdvanceCommitIndex' }>
  const early = { ...advance, index: advance.index + 1 }
  expect(checkTrace(withEvent(trace, commit, early))?.number).toBe(commit + 1)
  const promised = trace.events.findLastIndex(
    (event, at) =>
      event.action === 'Send' &&
      event.message.mtype === 'AppendEntriesResponse' &&
      event.message.msuccess &&
      trace.events[at - 1]?.action === 'Write',
  )
  const send = trace.events[promised] as Extract<TraceEvent, { action: 'Send' }>
  expect(checkTrace(withEvent(trace, promised, { ...send, token: 0 }))).toMatchObject({
    number: promised + 1,
    reason: 'the entries are on disk when they are acknowledged',
  })
})

test.each(Object.entries(mutants))(
  'the mutant %s of the Raft core can be applied to the source',
  (_, { file, changes }) => {
    const source = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    for (const [from] of changes) expect(source.split(from), from).toHaveLength(2)
  },
)

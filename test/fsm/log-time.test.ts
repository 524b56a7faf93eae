import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  CommandKind,
  FeatureLevelRaiseSchema,
  LogTimeResetSchema,
  type RequestId,
  SessionActorSchema,
} from '../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../src/entities/kinds/api-session.ts'
import { requestIdAheadMsMax } from '../../src/fsm/records/deduplication.ts'
import { isDisabled } from '../../src/lib/is-disabled.ts'
import { newUuidv7 } from '../../src/lib/text/uuid.ts'
import type { Actor } from '../../src/ports/actor.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import { formedState, identity, LogWriter, policy, service, startMs } from './support/log.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { ManualSchedule, TestStore } from './support/store.ts'
import { restorableState } from './support/restoring.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const MINUTE_MS = 60_000
const JUMP_MS = 2 * 24 * 60 * MINUTE_MS
const kind = CommandKind.LOG_TIME_RESET

function payloadOf(targetMs: number): Uint8Array {
  return toBinary(LogTimeResetSchema, create(LogTimeResetSchema, { targetMs: BigInt(targetMs) }))
}

function reset(log: LogWriter, targetMs: number): Outcome | null {
  return log.command(kind, payloadOf(targetMs), { level: 2 }).outcome
}

function request(id: Uint8Array): RequestId {
  return { caller: 'admin', id, bodyHash: Uint8Array.of(1) } as RequestId
}

function session(state: ClusterState): ApiSession {
  const found = state.get('apiSession', 's1')
  if (found === undefined) throw new Error('there is no session')
  return found
}

test('a reset sets log time to the requested time, from which it then advances with the timestamps in the log', () => {
  const { state, log } = restorableState()
  log.timeMs += JUMP_MS
  log.create('service', 'one', service('one'))
  expect(state.logTimeMs).toBe(startMs + JUMP_MS)
  const targetMs = startMs + MINUTE_MS
  expect(reset(log, targetMs)).toMatchObject({ ok: true, id: String(JUMP_MS - MINUTE_MS) })
  expect(state.logTimeMs).toBe(targetMs)
  log.timeMs += 1000
  log.create('service', 'two', service('two'))
  expect(state.logTimeMs).toBe(targetMs + 1000)
  expect(state.get('service', 'two')?.createdAt).toBe(targetMs + 1000)
  expect(reset(log, targetMs + 1000), 'the request is repeated').toMatchObject({
    ok: true,
    id: '0',
  })
  expect(reset(log, targetMs + JUMP_MS), 'never set forward').toMatchObject({ ok: true, id: '0' })
  expect(state.logTimeMs).toBe(targetMs + 1000)
  log.timeMs += JUMP_MS
  log.create('service', 'three', service('three'))
  reset(log, targetMs + 2000)
  log.timeMs += 500
  log.create('service', 'four', service('four'))
  expect(state.logTimeMs, 'a second time').toBe(targetMs + 2500)
})

test('a reset of log time keeps the intended lifetime of records that were stored while log time was wrong', () => {
  const { state, log } = restorableState()
  log.create('identity', 'ann', identity('ann', ['staff']))
  log.create('identity', 'bob', identity('bob'))
  log.create('service', 'wiki', service('wiki', ['shared']))
  log.timeMs += MINUTE_MS
  const early = { token: 'early', jwt: 'j.w.t', expiresAt: log.timeMs + 60 * MINUTE_MS }
  log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e1', {
    method: 'ott',
    identityId: 'ann',
    ...early,
  })
  log.timeMs += JUMP_MS
  const late = { token: 'late', jwt: 'j.w.t', expiresAt: log.timeMs + 60 * MINUTE_MS }
  log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e2', {
    method: 'ott',
    identityId: 'bob',
    ...late,
  })
  log.logIn('s1')
  log.disable('ann', 10)
  log.create('servicePolicy', 'p1', policy('p1', ['#staff'], ['#shared']))
  const targetMs = startMs + 3 * MINUTE_MS
  reset(log, targetMs)
  expect(session(state)).toMatchObject({ createdAt: targetMs, lastActivityAt: targetMs })
  expect(state.get('enrollment', 'e1')?.['expiresAt']).toBe(early.expiresAt)
  expect(state.get('enrollment', 'e2')).toMatchObject({
    createdAt: targetMs,
    expiresAt: targetMs + 60 * MINUTE_MS,
  })
  const ann = state.get('identity', 'ann')
  expect(ann).toMatchObject({ disabledAt: targetMs, disabledUntil: targetMs + 10 * MINUTE_MS })
  expect(ann !== undefined && isDisabled(ann, targetMs + 10 * MINUTE_MS)).toBe(false)
  // Values that depend on the views of clients also continue.
  log.timeMs += 1000
  log.patch('servicePolicy', 'p1', { serviceRoles: [] })
  expect(log.touch('s1', targetMs + 1000).ok).toBe(true)
  expect(session(state).lastActivityAt).toBe(targetMs + 1000)
})

test('a request whose outcome was discarded while log time was ahead does not take effect a second time after a reset', () => {
  const { state, log } = restorableState()
  log.timeMs += MINUTE_MS
  // The clock of the client that made the request ID is ahead by the maximum that is permitted.
  const early = request(newUuidv7(log.timeMs + requestIdAheadMsMax))
  expect(log.create('service', 'one', service('one'), { request: early }).ok).toBe(true)
  log.delete('service', 'one')
  log.timeMs += JUMP_MS
  const late = request(newUuidv7(log.timeMs))
  expect(log.create('service', 'two', service('two'), { request: late }).ok).toBe(true)
  log.delete('service', 'two')
  const targetMs = startMs + MINUTE_MS
  reset(log, targetMs)
  for (const [name, id] of [
    ['one', early],
    ['two', late],
  ] as const) {
    const again = log.create('service', name, service(name), { request: id })
    expect(again, name).toMatchObject({ ok: false })
    expect(state.get('service', name), name).toBeUndefined()
  }
  const floorMs = targetMs + requestIdAheadMsMax + 1
  log.timeMs += requestIdAheadMsMax
  const fresh = request(newUuidv7(floorMs))
  expect(log.create('service', 'three', service('three'), { request: fresh }).ok).toBe(true)
  // Request IDs from after the reset expire as usual.
  log.timeMs += 60 * MINUTE_MS
  log.create('service', 'four', service('four'))
  expect(state.requests.size).toBe(0)
})

test('only the host user can reset log time, and only from feature level 2 on', () => {
  const { state, log } = restorableState()
  log.logIn('s1')
  log.timeMs += JUMP_MS
  const admin = { identityId: 'admin', sessionId: 's1', address: '', permission: 'admin' }
  const actor = { case: 'session', value: create(SessionActorSchema, admin) } as Actor
  const refused = log.command(kind, payloadOf(startMs), { level: 2, actor })
  expect(refused.outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(reset(log, 0)).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
  expect(state.logTimeMs).toBe(startMs + JUMP_MS)
  const old = formedState()
  old.log.timeMs += JUMP_MS
  expect(reset(old.log, startMs)).toMatchObject({ ok: false, code: 'FEATURE_LEVEL_NOT_RAISED' })
  expect(old.state.logTimeMs).toBe(startMs + JUMP_MS)
})

test('a restarted controller continues with the log time at which it stopped', async () => {
  const store = new TestStore()
  const schedule = new ManualSchedule()
  const parts = { store, clock: { nowMs: () => startMs, monotonicMs: () => 0 } }
  const machine = await StateMachine.open({ ...parts, schedule: schedule.schedule })
  const log = new LogWriter((entry) => machine.apply(entry))
  log.form()
  const raise = toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level: 2 }))
  log.command(CommandKind.FEATURE_LEVEL_RAISE, raise)
  log.timeMs += JUMP_MS
  log.create('service', 'one', service('one'))
  reset(log, startMs + MINUTE_MS)
  await machine.snapshot()
  const again = await StateMachine.open({ ...parts, schedule: schedule.schedule })
  expect(again.digests()).toEqual(machine.digests())
  expect([again.logTimeMs, again.setbackMs]).toEqual([startMs + MINUTE_MS, JUMP_MS - MINUTE_MS])
  expect(again.logTimeMs + again.setbackMs, 'no stamp is earlier than the previous one').toBe(
    log.timeMs,
  )
})

import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  CommandKind,
  LogTimeResetSchema,
  RequestIdSchema,
  SessionActorSchema,
} from '../../proto/gen/command_pb.ts'
import { requestIdAheadMsMax } from '../../src/fsm/records/deduplication.ts'
import { newUuidv7 } from '../../src/lib/text/uuid.ts'
import type { Actor } from '../../src/ports/actor.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import { type LogWriter, service } from '../fsm/support/log.ts'
import { restorableState } from '../fsm/support/restoring.ts'

// The attack: everything expires by log time, and a command changes log time. A holder of an
// administrator's session moves it back so that expired things become valid, or forward so that
// everything expires; and an old request that was stored takes effect a second time.

const HOUR_MS = 60 * 60_000

function moved(log: LogWriter, targetMs: number, actor?: Actor): AppliedEntry {
  const message = create(LogTimeResetSchema, { targetMs: BigInt(targetMs) })
  const input = { level: 2, ...(actor === undefined ? {} : { actor }) }
  return log.command(CommandKind.LOG_TIME_RESET, toBinary(LogTimeResetSchema, message), input)
}

test('an administrator’s session cannot reset log time', () => {
  const { state, log } = restorableState()
  log.logIn('stolen')
  const nowMs = state.logTimeMs
  const admin = { identityId: 'admin', sessionId: 'stolen', permission: 'admin' }
  const actor = { case: 'session', value: create(SessionActorSchema, admin) } as Actor
  expect(moved(log, nowMs - HOUR_MS, actor).outcome).toMatchObject({ code: 'UNAUTHORIZED' })
  expect(state.logTimeMs).toBe(nowMs)
})

test('a reset cannot move log time forward', () => {
  const { state, log } = restorableState()
  const nowMs = state.logTimeMs
  moved(log, nowMs + HOUR_MS)
  expect(state.logTimeMs).toBe(nowMs)
})

test('a request that took effect before log time ran ahead does not take effect again after log time is reset', () => {
  const { state, log } = restorableState()
  const nowMs = state.logTimeMs
  const id = newUuidv7(nowMs + requestIdAheadMsMax)
  const request = create(RequestIdSchema, { caller: 'admin', id, bodyHash: Uint8Array.of(1) })
  expect(log.create('service', 'one', service('one'), { request }).ok).toBe(true)
  log.delete('service', 'one')
  log.timeMs += 48 * HOUR_MS
  log.create('service', 'other', service('other'))
  moved(log, nowMs)
  expect(log.create('service', 'one', service('one'), { request }).ok).toBe(false)
  expect(state.get('service', 'one')).toBeUndefined()
})

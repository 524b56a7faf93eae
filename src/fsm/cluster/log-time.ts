import { fromBinary } from '@bufbuild/protobuf'
import { LogTimeResetSchema } from '../../../proto/gen/command_pb.ts'
import { logTimeReset, logTimeResetRecordId } from '../../entities/kinds/log-time-reset.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { applyAllExpiries } from '../expiry/apply-expiries.ts'
import { requestIdAheadMsMax } from '../records/deduplication.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, fieldFaultOutcome } from '../apply/outcome.ts'

/**
 * Resets log time. Timestamps of log entries never decrease, so after the reset log time is the
 * timestamp minus a fixed setback. Stored times from the period in which log time was ahead are
 * shifted too; otherwise the records would expire late.
 */
export function resetLogTime(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const targetMs = Number(fromBinary(LogTimeResetSchema, payload).targetMs)
  if (!Number.isSafeInteger(targetMs) || targetMs <= 0) {
    return fieldFaultOutcome({ field: 'targetMs', reason: 'targetMs is no time' })
  }
  const aheadMs = state.logTimeMs - targetMs
  // The operator requested the reset twice, or the clocks have caught up.
  // @guard log-time-of-an-attacker--forward
  if (aheadMs <= 0) return acceptedOutcome('0')
  state.logTimeMs = targetMs
  const createdAt = state.get(logTimeReset.name, logTimeResetRecordId)?.createdAt ?? targetMs
  state.put(logTimeReset.name, {
    id: logTimeResetRecordId,
    createdAt,
    updatedAt: targetMs,
    revision: context.index,
    setbackMs: state.setbackMs + aheadMs,
    // Requests whose ids were dropped (while log time was ahead, or by this reset) must not take
    // effect twice, so older request ids are refused. The limit includes the time by which the
    // clock of a client may have been ahead.
    // @guard log-time-of-an-attacker--twice
    requestFloorMs: targetMs + requestIdAheadMsMax + 1,
  })
  state.forgetRequests()
  state.staged.clear()
  moveBack(state, targetMs, context.index)
  applyAllExpiries(state, context)
  return acceptedOutcome(String(aheadMs))
}

function moveBack(state: State, targetMs: number, revision: number): void {
  const within = (atMs: number | null): number | null =>
    atMs === null ? null : Math.min(atMs, targetMs)
  const each = <K extends KindName>(
    kind: K,
    moved: (record: RecordOf<K>) => Partial<RecordOf<K>>,
  ): void => {
    for (const id of Array.from(state.table(kind).ids)) {
      const found = state.get(kind, id)
      if (found === undefined) continue
      const record: EntityRecord = found
      const changes = Object.entries(moved(found))
      const isMoved = changes.some(([name, value]) => record[name] !== value)
      if (isMoved) state.put(kind, { ...record, ...Object.fromEntries(changes), revision })
    }
  }
  // Times after the new log time are set to the new log time: such sessions count as just used, and
  // such lists of services as just changed.
  each('apiSession', ({ createdAt, lastActivityAt, mfaPassedAt, codeRedeemedAt }) => ({
    createdAt: Math.min(createdAt, targetMs),
    // Sessions created before feature level 2 lack `codeRedeemedAt` and must not get it.
    ...(codeRedeemedAt ? { codeRedeemedAt: within(codeRedeemedAt) } : {}),
    lastActivityAt: within(lastActivityAt),
    mfaPassedAt: within(mfaPassedAt),
  }))
  // Pauses and locks whose start would be in the future start at the new log time.
  for (const kind of ['passwordAttempts', 'mfaAttempts'] as const) {
    each(kind, ({ lastAt }) => ({ lastAt: within(lastAt) }))
  }
  each('accessMark', ({ movedAt }) => ({ movedAt: within(movedAt) }))
  each('identity', ({ disabledAt, disabledUntil, lastSeenAt }) => ({
    ...(lastSeenAt ? { lastSeenAt: within(lastSeenAt) } : {}),
    disabledAt: within(disabledAt),
    disabledUntil: lasting(disabledAt, disabledUntil, targetMs),
  }))
  each('router', ({ onlineSince, offlineSince }) => ({
    ...(onlineSince ? { onlineSince: within(onlineSince) } : {}),
    ...(offlineSince ? { offlineSince: within(offlineSince) } : {}),
  }))
  // Records that were created while log time was ahead keep the length of their lifetime.
  for (const kind of ['enrollment', 'joinTicket', 'revocation'] as const) {
    each(kind, ({ createdAt, expiresAt }) => ({
      createdAt: Math.min(createdAt, targetMs),
      expiresAt: lasting(createdAt, expiresAt, targetMs),
    }))
  }
}

/**
 * The end of a period after the reset. If the period began after the new log time, the end is
 * shifted with the begin, so that the length stays the same.
 */
function lasting(fromMs: number | null, toMs: number | null, targetMs: number): number | null {
  return fromMs === null || toMs === null || fromMs <= targetMs ? toMs : toMs - (fromMs - targetMs)
}

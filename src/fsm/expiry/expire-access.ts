import {
  accessEnd,
  type AccessExpiryNotice,
  accessEndRecordId,
} from '../../entities/kinds/access-end.ts'
import { zeroRecord } from '../../entities/define-entity.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome } from '../apply/outcome.ts'
import { applyRoleAttributeExpiries, applyPolicyExpiry } from './apply-expiries.ts'
import type { State } from '../records/state.ts'
import {
  type PendingExpiryIndex,
  expirySortKey,
  type PendingExpiry,
  expirySortKeyAfter,
} from './pending-expiries.ts'

/** The state, with the index of the expiries that have not been applied yet. */
type StateWithEnds = State & { readonly ends: PendingExpiryIndex }

export const accessExpiryLimits = {
  /** Maximum number of expiries that one log entry applies; the next entry applies further ones. */
  endsPerEntryMax: 256,
  /**
   * Maximum number of expiries that one log entry announces a day in advance, and maximum number
   * that it announces an hour in advance.
   */
  noticesPerEntryMax: 256,
} as const

/** Times before an expiry at which it is announced. */
const leads = [
  { field: 'announcedDay', leadMs: 24 * 60 * 60_000 },
  { field: 'announcedHour', leadMs: 60 * 60_000 },
] as const
type Announced = Readonly<Record<(typeof leads)[number]['field'], string>>

/**
 * Ends access that has expired by log time, and announces expiries that are near. All controllers
 * do this when they apply the same entry. A repeated command changes nothing.
 */
export function expireAccess(
  state: StateWithEnds,
  _payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { announced, notices } = announceEnds(state, context.logTimeMs)
  const { endsPerEntryMax: max } = accessExpiryLimits
  const due = state.ends.between('', expirySortKeyAfter(context.logTimeMs), max)
  notices.push(...endDue(state, due, context))
  if (announced !== null || notices.length > 0) {
    const { logTimeMs, index: revision } = context
    const known =
      state.get('accessEnd', accessEndRecordId) ?? zeroRecord(accessEnd, accessEndRecordId)
    const createdAt = known.revision === 0 ? logTimeMs : known.createdAt
    const base = { createdAt, updatedAt: logTimeMs, revision }
    state.put('accessEnd', { ...known, ...announced, ...base, notices })
  }
  return acceptedOutcome('')
}

/**
 * The next time at which `expireAccess` must be called, according to the current records; null:
 * never.
 */
export function nextAccessExpiryMs(state: StateWithEnds): number | null {
  const times: number[] = []
  const first = state.ends.firstAfter('')
  if (first !== null) times.push(first.atMs)
  const announced = announcedPositions(state, state.logTimeMs)
  for (const { field, leadMs } of leads) {
    const next = state.ends.firstAfter(announced[field])
    if (next !== null) times.push(next.atMs - leadMs)
  }
  return times.length === 0 ? null : Math.min(...times)
}

/**
 * Positions in the order of expiries up to which expiries have been announced. A reset of log time
 * lowers them, so that later expiries are announced again.
 */
function announcedPositions(state: StateWithEnds, logTimeMs: number): Announced {
  const known = state.get('accessEnd', accessEndRecordId)
  const positions = leads.map(({ field, leadMs }) => {
    const limit = expirySortKeyAfter(logTimeMs + leadMs)
    const position = known?.[field] ?? ''
    return [field, position < limit ? position : limit] as const
  })
  return Object.fromEntries(positions) as Announced
}

interface Announcement {
  /** Positions up to which expiries are announced after this entry; null: no expiry came near. */
  readonly announced: Announced | null
  readonly notices: AccessExpiryNotice[]
}

function announceEnds(state: StateWithEnds, logTimeMs: number): Announcement {
  const known = announcedPositions(state, logTimeMs)
  const notices: AccessExpiryNotice[] = []
  const moved: Partial<Record<keyof Announced, string>> = {}
  const { noticesPerEntryMax: max } = accessExpiryLimits
  for (const [at, { field, leadMs }] of leads.entries()) {
    const limit = expirySortKeyAfter(logTimeMs + leadMs)
    const near = state.ends.between(known[field], limit, max)
    const last = near.at(-1)
    if (last === undefined) continue
    moved[field] = near.length < max ? limit : expirySortKey(last)
    const shorterMs = leads[at + 1]?.leadMs ?? 0
    for (const end of near) {
      // An expiry this near belongs to the announcement with the shorter lead time, or is already
      // past by log time.
      if (end.atMs - logTimeMs <= shorterMs) continue
      const record = state.get(end.kind, end.id)
      // No notice if less than the lead time was left at the last write of the record, because its
      // author knows of the expiry.
      if (record === undefined || record.updatedAt >= end.atMs - leadMs) continue
      notices.push(noticeOf('approaching', end, record.name))
    }
  }
  const isMoved = Object.keys(moved).length > 0
  return { announced: isMoved ? { ...known, ...moved } : null, notices }
}

function noticeOf(
  type: AccessExpiryNotice['type'],
  end: PendingExpiry,
  name: string,
): AccessExpiryNotice {
  const { kind, id, attribute, atMs: expiresAt } = end
  return { type, kind, id, name, attribute, expiresAt }
}

function endDue(
  state: StateWithEnds,
  due: readonly PendingExpiry[],
  context: CommandContext,
): AccessExpiryNotice[] {
  const notices = due.map((end) => noticeOf('ended', end, state.get(end.kind, end.id)?.name ?? ''))
  for (const [id, [first]] of Map.groupBy(due, ({ kind, id }) => `${kind} ${id}`)) {
    if (first === undefined) throw new TypeError(`group ${id} is not empty`)
    if (first.kind === 'servicePolicy') applyPolicyExpiry(state, first.id, context)
    else applyRoleAttributeExpiries(state, first.id, context)
  }
  return notices
}

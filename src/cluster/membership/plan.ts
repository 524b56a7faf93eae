import { clone, create, equals } from '@bufbuild/protobuf'

import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  DepartureSchema,
  type Member,
} from '../../../proto/gen/membership_pb.ts'
import type { ChangePlan, MembershipChange } from '../../ports/membership.ts'
import { REMOVED_KEYS_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { membershipLimits } from './limits.ts'
import { isSameMemberKey, addRemovedKey } from './member-keys.ts'
import type { NodeId } from '../../raft/types.ts'
import type { MembershipSnapshot } from './membership-snapshot.ts'

type Planned =
  | { readonly ok: true; readonly plan: ChangePlan; readonly target: ConfigurationRecord }
  | ChangeRefusal

interface ChangeRefusal {
  readonly ok: false
  readonly code: 'NOT_FOUND' | 'MEMBERSHIP_REFUSED'
  /** Reason why the change is impossible, as one sentence with a remedy. */
  readonly reason: string
  /**
   * True if the reason may disappear by itself: the leader has no contact with the learner yet, or
   * the learner has not caught up. Contact follows soon after a change of leader, or after a
   * renewed certificate has caused reconnects.
   */
  readonly mayPass: boolean
}

/** Number of voters that may fail without stopping writes. */
function toleranceOf(voters: readonly NodeId[]): number {
  return Math.floor((voters.length - 1) / 2)
}

export function voterIds(record: ConfigurationRecord): NodeId[] {
  return record.members.flatMap(({ id, voter }) => (voter ? [id] : [])).sort()
}

/** Whether the member is connected and caught up, so that it can vote immediately. */
export function isReadyToVote(
  now: Pick<MembershipSnapshot, 'inContact' | 'lagEntries'>,
  id: NodeId,
): boolean {
  return (
    now.inContact.has(id) &&
    (now.lagEntries(id) ?? Infinity) <= membershipLimits.promotionLagEntriesMax
  )
}

/** Short description of a change, for logs and errors. */
export function describeMembershipChange(change: MembershipChange): string {
  return change.verb === 'replace'
    ? `replace ${change.oldId} by ${change.newId}`
    : `${change.verb} ${change.id}`
}

/**
 * Computes the members after a change. Pure. After every wait and on every new leader, the caller
 * must compute the plan again from the wanted change and the current members.
 */
export function planMembershipChange(now: MembershipSnapshot, change: MembershipChange): Planned {
  const edited = edit(now, change)
  if ('reason' in edited) return edited
  const { target, warnings } = edited
  target.members.sort((a, b) => (a.id < b.id ? -1 : 1))
  const before = voterIds(now.record)
  const after = voterIds(target)
  const isNeeded = !equals(ConfigurationSchema, now.record, target)
  if (isNeeded && after.length === 0) {
    return refused(`${before.join()} is the last voter; promote another controller first`)
  }
  const unreached = after.filter((id) => !now.inContact.has(id))
  const majority = Math.floor(after.length / 2) + 1
  if (isNeeded && after.length - unreached.length < majority) {
    return refused(
      `the change could never take effect: of the remaining voters ${after.join(', ')}, ${majority} must respond and ${unreached.join(', ')} ${unreached.length === 1 ? 'does' : 'do'} not; start ${unreached.length === 1 ? 'it' : 'one of them'} again first`,
    )
  }
  const plan: ChangePlan = {
    change,
    isNeeded,
    votersBefore: before,
    votersAfter: after,
    toleranceBefore: toleranceOf(before),
    toleranceAfter: toleranceOf(after),
    warnings: isNeeded ? [...warnings, ...generalWarnings(now, before, after)] : warnings,
    confirmation: isNeeded ? confirmationOf(change, before, after) : null,
  }
  return { ok: true, plan, target }
}

/**
 * Plan of a change that is already complete.
 * @param record configuration that resulted from the change.
 */
export function planForCompletedChange(
  change: MembershipChange,
  record: ConfigurationRecord,
): ChangePlan {
  const voters = voterIds(record)
  const tolerance = toleranceOf(voters)
  return {
    change,
    isNeeded: false,
    votersBefore: voters,
    votersAfter: voters,
    toleranceBefore: tolerance,
    toleranceAfter: tolerance,
    warnings: [],
    confirmation: null,
  }
}

/** Member that the change removes; null if none. */
export function removedMemberId(change: MembershipChange): NodeId | null {
  if (change.verb === 'remove') return change.id
  return change.verb === 'replace' ? change.oldId : null
}

/**
 * A removal rotates all secrets except the key of the issuing authority, whose rotation needs the
 * offline root.
 */
const AUTHORITY_WARNING =
  'anyone with the keys of a controller may have the key of the issuing authority as well; rotate it after the removal (flotilla pki renew-issuing)'

/** Warning about the sessions that end with the removal, printed before the change. */
function sessionsWarning(id: NodeId, isCompromised: boolean): string {
  return isCompromised
    ? `all API sessions end: all people and programs log in again`
    : `people and programs that logged in at ${id} by OIDC stay logged in if they use the address of their login or its client certificate; others of them log in again`
}

interface Edited {
  readonly target: ConfigurationRecord
  readonly warnings: readonly string[]
}

function edit(now: MembershipSnapshot, change: MembershipChange): Edited | ChangeRefusal {
  const target = clone(ConfigurationSchema, now.record)
  switch (change.verb) {
    case 'promote':
      return promote(now, target, change.id)
    case 'demote':
      return demote(target, change.id)
    case 'remove':
      return remove(now, target, change.id, change.isCompromised)
    case 'replace':
      return replace(now, target, change.oldId, change.newId)
  }
}

function promote(
  now: MembershipSnapshot,
  target: ConfigurationRecord,
  id: NodeId,
): Edited | ChangeRefusal {
  const member = memberIn(target, id)
  if (member === undefined) return unknown(id)
  if (member.voter) return { target, warnings: [] }
  const obstacle = obstacleToVote(now, member)
  if (obstacle !== null) return { ...refused(obstacle), mayPass: true }
  makeVoter(member)
  return { target, warnings: [] }
}

export function makeVoter(member: Member): void {
  member.voter = true
  member.promote = false
  member.returning = false
}

function demote(target: ConfigurationRecord, id: NodeId): Edited | ChangeRefusal {
  const member = memberIn(target, id)
  if (member === undefined) return unknown(id)
  member.voter = false
  member.promote = false
  member.returning = false
  return { target, warnings: [] }
}

function remove(
  now: MembershipSnapshot,
  target: ConfigurationRecord,
  id: NodeId,
  isCompromised: boolean,
): Edited | ChangeRefusal {
  const member = memberIn(target, id)
  const key = member?.publicKeySha256 ?? now.admittedKeySha256(id)
  const isDeparted = target.departed.some((departure) => departure.id === id)
  if (key === null && !isDeparted) {
    const warnings = [`${id} is not a member of this cluster; nothing to remove`]
    return { target, warnings: isCompromised ? [...warnings, AUTHORITY_WARNING] : warnings }
  }
  target.members = target.members.filter((known) => known.id !== id)
  if (isCompromised) {
    for (const departure of target.departed) if (departure.id === id) departure.compromised = true
  }
  const authority = isCompromised ? [AUTHORITY_WARNING] : []
  if (key === null) return { target, warnings: authority }
  const isMentioned = target.departed.some(
    (departure) => departure.id === id && isSameMemberKey(departure, key),
  )
  if (isMentioned) return { target, warnings: authority }
  if (target.departed.length >= membershipLimits.departedMax) {
    return refused('too many unfinished removals; retry in a few seconds')
  }
  const publicKeySha256 = key
  target.departed.push(create(DepartureSchema, { id, publicKeySha256, compromised: isCompromised }))
  if (now.featureLevel >= REMOVED_KEYS_FEATURE_LEVEL) addRemovedKey(target, { id, publicKeySha256 })
  const warnings =
    member === undefined ? [`${id} was admitted and never connected; its admission is revoked`] : []
  const sessions = member === undefined ? [] : [sessionsWarning(id, isCompromised)]
  return { target, warnings: [...warnings, ...sessions, ...authority] }
}

function replace(
  now: MembershipSnapshot,
  target: ConfigurationRecord,
  oldId: NodeId,
  newId: NodeId,
): Edited | ChangeRefusal {
  const leaving = memberIn(target, oldId)
  const coming = memberIn(target, newId)
  if (oldId === newId) return refused(`${oldId} cannot replace itself; name two controllers`)
  if (coming === undefined) return unknown(newId)
  if (leaving === undefined) {
    return coming.voter ? { target, warnings: [] } : unknown(oldId)
  }
  if (!leaving.voter) {
    return refused(
      coming.voter
        ? `${oldId} is a learner and ${newId} a voter, and the controller that leaves comes first; to put ${oldId} in the place of ${newId}, type: flotilla cluster replace ${newId} ${oldId}`
        : `${oldId} is a learner; promote ${newId} and remove ${oldId} instead`,
    )
  }
  if (coming.voter) return refused(`${newId} is a voter already; remove ${oldId} instead`)
  const obstacle = obstacleToVote(now, coming)
  if (obstacle !== null) return { ...refused(obstacle), mayPass: true }
  makeVoter(coming)
  return remove(now, target, oldId, false)
}

/**
 * The first reason why a learner cannot become a voter yet, as one sentence; null if there is none.
 */
function obstacleToVote(
  now: MembershipSnapshot,
  { id, promote: isPromoted }: Member,
): string | null {
  if (!now.inContact.has(id)) {
    return `${id} has no connection to the leader ${now.leaderId}; start it, or repair the network between the two`
  }
  if (isReadyToVote(now, id)) return null
  const lag = now.lagEntries(id)
  const lacks =
    lag === null ? 'has not started to replicate the log' : `is ${lag} log entries behind`
  const remedy = isPromoted
    ? 'it is promoted automatically once it has caught up'
    : 'wait until it has caught up (flotilla cluster status)'
  return `${id} ${lacks}: ${remedy}`
}

function generalWarnings(
  now: MembershipSnapshot,
  before: readonly NodeId[],
  after: readonly NodeId[],
): string[] {
  const warnings: string[] = []
  if (before.includes(now.leaderId) && !after.includes(now.leaderId)) {
    warnings.push(`${now.leaderId} is the leader; it transfers leadership first`)
  }
  if (after.length % 2 === 0 && after.join() !== before.join()) {
    warnings.push(
      `${after.length} voters tolerate no more failures than ${after.length - 1}; prefer an odd number`,
    )
  }
  const unreached = after.filter((id) => !now.inContact.has(id))
  if (unreached.length > 0) {
    const spare = toleranceOf(after) - unreached.length
    warnings.push(
      `${unreached.join(', ')} ${unreached.length === 1 ? 'is' : 'are'} unreachable; until that is repaired, ${spare === 0 ? 'losing one more voter stops writes' : `${failures(spare)} more can be tolerated`}`,
    )
  }
  return warnings
}

/**
 * Text that an operator must type if the change reduces the failure tolerance; the text names the
 * reduction. null for other changes.
 */
function confirmationOf(
  change: MembershipChange,
  before: readonly NodeId[],
  after: readonly NodeId[],
): string | null {
  if (toleranceOf(after) >= toleranceOf(before)) return null
  return `${describeMembershipChange(change)} and tolerate ${failures(toleranceOf(after))}`
}

function failures(count: number): string {
  return `${count} ${count === 1 ? 'failure' : 'failures'}`
}

function memberIn(record: ConfigurationRecord, id: NodeId): Member | undefined {
  return record.members.find((member) => member.id === id)
}

function unknown(id: NodeId): ChangeRefusal {
  const reason = `${id} is not a member of this cluster; see flotilla cluster list`
  return { ok: false, code: 'NOT_FOUND', reason, mayPass: false }
}

function refused(reason: string): ChangeRefusal {
  return { ok: false, code: 'MEMBERSHIP_REFUSED', reason, mayPass: false }
}

import type {
  Configuration as ConfigurationRecord,
  Departure,
} from '../../../proto/gen/membership_pb.ts'
import type { NodeId } from '../../raft/types.ts'
import { isReadyToVote, votersOf } from './plan.ts'
import type { MembersNow } from './members-now.ts'

/**
 * View that the leader reconciles by; all of it but the silences is the same for the next leader.
 */
export interface ReconcilerView extends Pick<MembersNow, 'inContact' | 'lagEntries' | 'leaderId'> {
  /** Configuration at rest. */
  readonly record: ConfigurationRecord
  /** Members that say that they are connected to this one, the leader left out. */
  readonly reachedBy: (id: NodeId) => ReadonlySet<NodeId>
  /** Since this leader was last connected to it, or since it began to lead. */
  readonly silentMs: (id: NodeId) => number
  /** Somebody who has gone could open a shared secret in force. */
  readonly isRotationDue: boolean
  /** Some member cannot open a shared secret in force. */
  readonly lacksSecrets: boolean
  /** Controllers that were admitted by a ticket that has expired since. */
  readonly admittedLongAgo: readonly NodeId[]
  /** Level in force, and the highest that every voter is known to know. */
  readonly featureLevel: { readonly inForce: number; readonly ofVoters: number }
}

export type ReconcileStep =
  /** Takes back what a removed member knew, and then the mention of it. */
  | { readonly type: 'settle'; readonly departure: Departure }
  /** All that are ready at once, so that there is no even number of voters in between. */
  | { readonly type: 'promote'; readonly ids: readonly NodeId[] }
  | { readonly type: 'rotate' }
  | { readonly type: 'share' }
  /** Every voter runs a version that knows a higher feature level. */
  | { readonly type: 'raise'; readonly level: number }
  /** A learner that was let in to vote and stays away, or a controller that never connected. */
  | { readonly type: 'drop'; readonly id: NodeId }

/**
 * The next thing to do, the most urgent first; null when all is well. Pure.
 * @param isHeld what failed a moment ago: it must not keep the rest waiting.
 */
export function nextDuty(
  view: ReconcilerView,
  joinTimeoutMs: number,
  isHeld: (type: ReconcileStep['type']) => boolean = () => false,
): ReconcileStep | null {
  return dutiesOf(view, joinTimeoutMs).find(({ type }) => !isHeld(type)) ?? null
}

function dutiesOf(view: ReconcilerView, joinTimeoutMs: number): readonly ReconcileStep[] {
  const duties: ReconcileStep[] = []
  const [departure] = view.record.departed
  if (departure !== undefined) duties.push({ type: 'settle', departure })
  if (view.isRotationDue) duties.push({ type: 'rotate' })
  const ids = candidates(view.record).filter((id) => isReady(view, id))
  if (ids.length > 0) duties.push({ type: 'promote', ids })
  if (view.lacksSecrets) duties.push({ type: 'share' })
  const { inForce, ofVoters } = view.featureLevel
  if (ofVoters > inForce) duties.push({ type: 'raise', level: ofVoters })
  const late = view.record.members.find(
    ({ id, voter, promote, returning }) =>
      !voter && promote && !returning && view.silentMs(id) >= joinTimeoutMs,
  )
  // @guard admitted-and-never-connected--duty
  const lateId = late?.id ?? neverConnected(view)
  if (lateId !== undefined) duties.push({ type: 'drop', id: lateId })
  return duties
}

/**
 * A controller that used its ticket and never connected is in no list of members, and could come in
 * at any later time.
 */
function neverConnected({ record, admittedLongAgo }: ReconcilerView): NodeId | undefined {
  return admittedLongAgo.find((id) => !record.members.some((member) => member.id === id))
}

/** Learners that are to vote. */
export function candidates(record: ConfigurationRecord): readonly NodeId[] {
  return record.members.flatMap(({ id, voter, promote }) => (promote && !voter ? [id] : []))
}

/**
 * A voter must be able to hear every candidate that a majority may elect, so a majority of today's
 * voters has to reach it: the leader alone may be its only link.
 */
function isReady(view: ReconcilerView, id: NodeId): boolean {
  if (!isReadyToVote(view, id)) return false
  const reachedBy = view.reachedBy(id)
  const voters = votersOf(view.record)
  const count = voters.filter((voter) => voter === view.leaderId || reachedBy.has(voter)).length
  return count > voters.length / 2
}

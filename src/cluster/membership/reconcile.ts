import type {
  Configuration as ConfigurationRecord,
  Departure,
} from '../../../proto/gen/membership_pb.ts'
import type { NodeId } from '../../raft/types.ts'
import { isReadyToVote, voterIds } from './plan.ts'
import type { MembershipSnapshot } from './membership-snapshot.ts'

/**
 * Facts from which the leader chooses its next step. The next leader has the same record, but its
 * own observations of connections and progress.
 */
export interface ReconcilerView extends Pick<
  MembershipSnapshot,
  'inContact' | 'lagEntries' | 'leaderId'
> {
  /** A committed configuration that is not joint. */
  readonly record: ConfigurationRecord
  /** Voters, except the leader, that report a connection to the given member. */
  readonly reachedBy: (id: NodeId) => ReadonlySet<NodeId>
  /**
   * Time since this leader was last connected to the member, or since it became leader if it was
   * never connected.
   */
  readonly silentMs: (id: NodeId) => number
  /**
   * Whether the cluster key or the factor key must be rotated, because a former member could
   * decrypt it, or there is no factor key yet.
   */
  readonly isRotationDue: boolean
  /** Whether an admitted controller cannot decrypt a shared secret that it needs. */
  readonly lacksSecrets: boolean
  /** Controllers, including members, admitted by a ticket that has expired or was deleted. */
  readonly admittedIdsWithExpiredTickets: readonly NodeId[]
  /** The cluster's level, and the highest level that every voter supports. */
  readonly featureLevel: { readonly inForce: number; readonly ofVoters: number }
}

export type ReconcileStep =
  /** Revokes the secrets that a removed member knew, and then deletes its departure record. */
  | { readonly type: 'settle'; readonly departure: Departure }
  /**
   * Promotes all ready learners in one change, which avoids an even number of voters in between.
   */
  | { readonly type: 'promote'; readonly ids: readonly NodeId[] }
  | { readonly type: 'rotate' }
  | { readonly type: 'share' }
  /** Raises the feature level to one that every voter's release supports. */
  | { readonly type: 'raise'; readonly level: number }
  /**
   * Removes a learner that was to become a voter but stays disconnected, or a controller that never
   * connected. `reason` completes "because …".
   */
  | { readonly type: 'drop'; readonly id: NodeId; readonly reason: string }

/**
 * The most urgent step, or null if none is needed. Pure.
 * @param isHeld returns true for a type of step that failed recently, so that it does not block the
 * others.
 */
export function nextReconcileStep(
  view: ReconcilerView,
  joinTimeoutMs: number,
  isHeld: (type: ReconcileStep['type']) => boolean = () => false,
): ReconcileStep | null {
  return dutiesOf(view, joinTimeoutMs).find(({ type }) => !isHeld(type)) ?? null
}

function dutiesOf(view: ReconcilerView, joinTimeoutMs: number): readonly ReconcileStep[] {
  const steps: ReconcileStep[] = []
  const [departure] = view.record.departed
  if (departure !== undefined) steps.push({ type: 'settle', departure })
  if (view.isRotationDue) steps.push({ type: 'rotate' })
  const ids = learnersAwaitingPromotion(view.record).filter((id) => isReady(view, id))
  if (ids.length > 0) steps.push({ type: 'promote', ids })
  if (view.lacksSecrets) steps.push({ type: 'share' })
  const { inForce, ofVoters } = view.featureLevel
  if (ofVoters > inForce) steps.push({ type: 'raise', level: ofVoters })
  const late = view.record.members.find(
    ({ id, voter, promote, returning }) =>
      !voter && promote && !returning && view.silentMs(id) >= joinTimeoutMs,
  )
  if (late !== undefined) {
    const reason = 'it was disconnected for too long before its promotion'
    steps.push({ type: 'drop', id: late.id, reason })
  }
  // @guard admitted-and-never-connected--step
  const unknownId = late === undefined ? neverConnected(view) : undefined
  if (unknownId !== undefined) {
    steps.push({ type: 'drop', id: unknownId, reason: 'it never connected after its admission' })
  }
  return steps
}

/**
 * A controller that redeemed its ticket but never connected. No list of members shows it, and it
 * could connect at any later time.
 */
function neverConnected({
  record,
  admittedIdsWithExpiredTickets,
}: ReconcilerView): NodeId | undefined {
  return admittedIdsWithExpiredTickets.find(
    (id) => !record.members.some((member) => member.id === id),
  )
}

/** Learners that will become voters. */
export function learnersAwaitingPromotion(record: ConfigurationRecord): readonly NodeId[] {
  return record.members.flatMap(({ id, voter, promote }) => (promote && !voter ? [id] : []))
}

/**
 * A voter must be able to reach every candidate that a majority may elect. A majority of the
 * current voters must therefore be connected to the learner; its connection to the leader is not
 * enough.
 */
function isReady(view: ReconcilerView, id: NodeId): boolean {
  if (!isReadyToVote(view, id)) return false
  const reachedBy = view.reachedBy(id)
  const voters = voterIds(view.record)
  const count = voters.filter((voter) => voter === view.leaderId || reachedBy.has(voter)).length
  return count > voters.length / 2
}

import type { Clock } from '../../lib/clock.ts'
import type { ActionRecorder, MembershipControl } from '../../ports/membership.ts'
import type { Logger } from '../logger.ts'
import { MemberChanger } from './member-changer.ts'
import type { MembershipStateView, MembershipConsensus } from './membership-consensus.ts'
import { MembershipService } from './service.ts'
import { AdmissionServer } from './admission-server.ts'
import { LeaderRequestForwarder } from './leader-request-forwarder.ts'
import { MembershipReconciler, type ReconcilerDeps } from './reconciler.ts'

interface MemberManagementDeps extends Pick<
  ReconcilerDeps,
  'secrets' | 'featureLevel' | 'joinTimeoutMs'
> {
  readonly consensus: MembershipConsensus
  readonly state: MembershipStateView
  readonly clusterId: string
  readonly generation: number
  readonly clock: Clock
  readonly log: Logger
  readonly actions: ActionRecorder
  /**
   * Called on the leader after it served an operator's request to transfer leadership, even if it
   * was already the requested leader.
   */
  readonly onTransferred?: () => void
}

export interface MemberManagement {
  readonly control: MembershipControl
  /** Starts the reconciler. The other methods of membership management work before this call. */
  start(): void
  stop(): void
  /**
   * Called when the mesh learns that this controller was removed. Pending requests to remove this
   * controller then succeed.
   */
  onSelfRemoved(): void
}

/**
 * Creates the membership management of one controller, once per cluster node. It runs on all
 * controllers; most of it acts only on the leader.
 */
export function createMemberManagement(deps: MemberManagementDeps): MemberManagement {
  const { consensus, state, clock } = deps
  const calls = new LeaderRequestForwarder(consensus, clock)
  const changer = new MemberChanger(consensus, state, clock)
  const control = new MembershipService({ ...deps, changer, calls })
  new AdmissionServer({ ...deps, changer, calls })
  const steward = new MembershipReconciler({ ...deps, changer })
  return {
    control,
    start: () => steward.start(),
    stop: () => steward.stop(),
    onSelfRemoved: () => control.onSelfRemoved(),
  }
}

import type { ClusterRefusal } from '../../cluster/thread-channel.ts'
import type { AdmissionOutcome } from '../../cluster/membership/decide-admission.ts'
import type { GenerationFence } from '../../store/folder/fence-file.ts'

/** Action that a controller takes when its cluster no longer accepts it. */
export type RemovalAction =
  /**
   * The controller was removed. It exits with success, because a restart would change nothing.
   */
  | { readonly type: 'removed'; readonly sentence: string }
  /**
   * The cluster continues without this controller in a newer generation. The controller records
   * that in a FENCE file, which also applies after a restart.
   */
  | { readonly type: 'fenced'; readonly sentence: string; readonly fence: GenerationFence }
  /**
   * The cluster has recorded another disk for this controller, so the controller starts again with
   * an empty data folder.
   */
  | { readonly type: 'rebuild'; readonly sentence: string }

/**
 * The action after a peer has refused this controller.
 * @returns null if the controller should continue to request admission.
 */
export function removalActionAfterRefusal(
  selfId: string,
  refusal: ClusterRefusal,
): RemovalAction | null {
  const { by, index, generation } = refusal
  switch (refusal.reason) {
    case 'removed':
      return { type: 'removed', sentence: removedSentence(selfId, by, index) }
    case 'rolled-back':
      return {
        type: 'rebuild',
        sentence: `${selfId} acknowledged entries that its data folder lacks, according to ${by}; it was rolled back to an older state`,
      }
    case 'other-store':
      return {
        type: 'rebuild',
        sentence: `${selfId} has another data folder since configuration ${index}, according to ${by}`,
      }
    case 'fenced': {
      const fence = { generation, by }
      return { type: 'fenced', sentence: fencedMessage(selfId, fence), fence }
    }
    case 'not-yet-a-member':
      return null
  }
}

/**
 * The action after a refused admission. A refusal is usually temporary. After a removal it is
 * final: the leader has confirmed that the key belongs to no member and has no admission, and only
 * a new ticket changes that.
 */
export function removalActionAfterAdmission(answer: AdmissionOutcome): RemovalAction | null {
  if (answer.outcome !== 'refused') return null
  const isFinal = answer.reason === 'removed' || answer.reason === 'not-admitted'
  return isFinal ? { type: 'removed', sentence: answer.detail } : null
}

/** The message when the process exits, and at every later start. */
export function fencedMessage(selfId: string, { generation, by }: GenerationFence): string {
  return `the cluster was recovered without ${selfId} (generation ${generation}, reported by ${by}); to join again, move its data folder, key and certificate away and use a new ticket`
}

function removedSentence(selfId: string, by: string, index: number): string {
  return `${selfId} was removed from the cluster (configuration ${index}, reported by ${by}); to join again, move its data folder, key and certificate away and use a new ticket`
}

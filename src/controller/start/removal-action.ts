import type { SelfRefusal } from '../../cluster/link.ts'
import type { EntryAnswer } from '../../cluster/membership/judge-admission.ts'
import type { Fence } from '../../store/folder/fence-file.ts'

/** Action of a controller when its cluster no longer takes it as it is. */
export type RemovalAction =
  /** It ends in peace: starting it again would change nothing. */
  | { readonly type: 'removed'; readonly sentence: string }
  /** The cluster goes on without it, in a newer generation, and that must outlive a restart. */
  | { readonly type: 'fenced'; readonly sentence: string; readonly fence: Fence }
  /** Its disk is not the one that is known: it begins with an empty one. */
  | { readonly type: 'rebuild'; readonly sentence: string }

/** @returns null: it goes on, and keeps asking to be let in. */
export function fateOfRefusal(selfId: string, refusal: SelfRefusal): RemovalAction | null {
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
      return { type: 'fenced', sentence: fencedSentence(selfId, fence), fence }
    }
    case 'not-yet-a-member':
      return null
  }
}

/**
 * A refusal to enter may pass with time, but for what a removal leaves behind: the leader has
 * confirmed that the key is neither a member's nor admitted, and only a new ticket changes that.
 */
export function fateOfAnswer(answer: EntryAnswer): RemovalAction | null {
  if (answer.outcome !== 'refused') return null
  const isFinal = answer.reason === 'removed' || answer.reason === 'not-admitted'
  return isFinal ? { type: 'removed', sentence: answer.because } : null
}

/** For the end of the process, and for each start after it. */
export function fencedSentence(selfId: string, { generation, by }: Fence): string {
  return `the cluster was recovered without ${selfId} (generation ${generation}, reported by ${by}); to join again, move its data folder, key and certificate away and use a new ticket`
}

function removedSentence(selfId: string, by: string, index: number): string {
  return `${selfId} was removed from the cluster (configuration ${index}, reported by ${by}); to join again, move its data folder, key and certificate away and use a new ticket`
}

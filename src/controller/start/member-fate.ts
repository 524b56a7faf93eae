import type { SelfRefusal } from '../../cluster/link.ts'
import type { EntryAnswer } from '../../cluster/entrance/entry.ts'

/** What a controller does when its cluster no longer takes it as it is. */
export type Fate =
  /** It ends in peace: starting it again would change nothing. */
  | { readonly type: 'removed'; readonly sentence: string }
  /** Its disk is not the one that is known: it begins with an empty one. */
  | { readonly type: 'rebuild'; readonly sentence: string }

/** @returns null: it goes on, and keeps asking to be let in. */
export function fateOfRefusal(selfId: string, refusal: SelfRefusal): Fate | null {
  const { by, index } = refusal
  switch (refusal.reason) {
    case 'removed':
      return { type: 'removed', sentence: removedSentence(selfId, by, index) }
    case 'rolled-back':
      return {
        type: 'rebuild',
        sentence: `${by} remembers more of this data folder than is in it: it was rolled back to an older state`,
      }
    case 'other-store':
      return {
        type: 'rebuild',
        sentence: `the cluster knows ${selfId} by another data folder since configuration ${index} (${by} says so)`,
      }
    case 'not-yet-a-member':
      return null
  }
}

/**
 * A refusal to enter may pass with time, but for what a removal leaves behind: the leader has confirmed that the key is
 * neither a member's nor admitted, and only a new ticket changes that.
 */
export function fateOfAnswer(answer: EntryAnswer): Fate | null {
  if (answer.outcome !== 'refused') return null
  const isFinal = answer.reason === 'removed' || answer.reason === 'not-admitted'
  return isFinal ? { type: 'removed', sentence: answer.because } : null
}

function removedSentence(selfId: string, by: string, index: number): string {
  return `${selfId} was removed from the cluster as of configuration ${index} (${by} says so); to let it in again, move its data folder, key and certificate away and join with a new ticket`
}

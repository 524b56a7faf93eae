import { Problem } from '../lib/problems.ts'
import type { LatestReads } from '../ports/latest-reads.ts'

/**
 * Evaluates a request. If the request would be refused, evaluates it again with the latest state,
 * because another controller may just have written a permission, session or host. If no leader
 * confirms the latest commit index, the first result counts.
 */
export async function evaluateAgainBeforeRefusal<T>(
  reads: Pick<LatestReads, 'reachLatest'>,
  judge: () => T | Promise<T>,
  isRefused: (judged: T) => boolean,
): Promise<T> {
  const judged = await judge()
  if (!isRefused(judged)) return judged
  try {
    await reads.reachLatest()
  } catch (error) {
    if (error instanceof Problem) return judged
    throw error
  }
  return await judge()
}

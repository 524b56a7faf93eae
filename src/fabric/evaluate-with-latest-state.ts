import { Problem } from '../lib/problems.ts'
import type { LatestReads } from '../ports/latest-reads.ts'

/**
 * Evaluates a request, and if it would be refused, evaluates it again with the latest state: a
 * right, session or host may have been written through another controller just before. If no leader
 * confirms the latest commit index, the first result is used.
 */
export async function evaluateWithLatestState<T>(
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

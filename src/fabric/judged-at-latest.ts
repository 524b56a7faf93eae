import { Problem } from '../lib/problems.ts'
import type { LatestReads } from '../ports/latest-reads.ts'

/**
 * Judges, and judges once more what would be refused, at the latest commit: a right, a session or a
 * host may have been written on another controller a moment ago. Where no leader confirms what the
 * latest commit is, the first judgement stands.
 */
export async function judgedAtLatest<T>(
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

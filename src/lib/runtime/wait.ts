import type { Clock } from '../clock.ts'

const POLL_MS = 20

/** Polls the condition. @returns false when `deadlineMs` (monotonic) passed first. */
export async function waitUntil(
  clock: Clock,
  deadlineMs: number,
  condition: () => boolean,
  pollMs = POLL_MS,
): Promise<boolean> {
  while (!condition()) {
    if (clock.monotonicMs() >= deadlineMs) return false
    await pause(pollMs)
  }
  return true
}

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}

import { readdirSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** Name that libuv gives the threads of its pool (since 1.50). */
const POOL_THREAD = 'libuv-worker'
/**
 * One tenth of a normal thread's share where both want the processor, all of it where nobody else
 * does. The lowest priority (19) would be a seventieth, and log-ins would not end while writes
 * leave no core idle.
 */
const NICE = 10

/**
 * Lets the threads of libuv's pool stand back behind all others of this process. Password hashes
 * run there, tens of milliseconds each: with a few at work on every core, each of the dozen thread
 * wake-ups of a write would wait a time slice, and heartbeats with them. What else runs there (the
 * state written behind) is in nobody's way.
 *
 * On Linux a priority belongs to a thread; elsewhere, and where it is not allowed, nothing is
 * changed. Call it once the pool is at work: its threads start with the first job.
 * @returns how many threads stand back.
 */
export function lowerPoolPriority(): number {
  if (process.platform !== 'linux') return 0
  let lowered = 0
  try {
    for (const thread of readdirSync('/proc/self/task')) {
      const name = readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim()
      if (name !== POOL_THREAD) continue
      setPriority(Number(thread), NICE)
      lowered += 1
    }
  } catch {
    // A hardened container may forbid either; the cost is latency during log-in storms.
  }
  return lowered
}

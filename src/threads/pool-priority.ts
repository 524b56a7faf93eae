import { readdirSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** Name of libuv's pool threads (since 1.50). */
const POOL_THREAD = 'libuv-worker'
/**
 * Under contention, these threads get one tenth of a normal thread's share; otherwise all idle
 * time. With the lowest priority (19) the share would be a seventieth, and log-ins would never end
 * while writes keep all cores busy.
 */
const NICE = 10

/**
 * Lowers the priority of libuv's pool threads below all other threads of this process. Password
 * hashes run there, tens of milliseconds each. A write wakes a dozen threads; with a few hashes on
 * every core, each wake-up would wait for a time slice, and so would heartbeats. The other work of
 * the pool, asynchronous state writes, is not urgent.
 *
 * On Linux, a priority belongs to a thread. On other systems, or without permission, nothing
 * changes. Call it once the pool is in use, because its threads start with the first job.
 * @returns the number of threads with lowered priority.
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
    // A hardened container may forbid either. The cost is latency while many users log in.
  }
  return lowered
}

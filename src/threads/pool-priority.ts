import { readdirSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** Name of libuv's pool threads (since 1.50). */
const POOL_THREAD = 'libuv-worker'
/**
 * Nice value for the pool threads. Under contention they get one tenth of a normal thread's share;
 * otherwise, all idle time. With the lowest priority (19), the share would be a seventieth, and
 * log-ins would never finish while writes keep all cores busy.
 */
const NICE = 10

/**
 * Lowers the priority of libuv's pool threads below that of all other threads in this process.
 * Password hashes run in the pool, tens of milliseconds each. A write wakes up a dozen other
 * threads; with a few hashes on every core, each of these threads, and each heartbeat, would have
 * to wait for a time slice. The other work of the pool, asynchronous state writes, is not urgent.
 *
 * On Linux, each thread has its own priority. On other systems, or without permission, nothing
 * changes. Call it after the pool has received a job, because the first job starts its threads.
 * @returns the number of threads whose priority was lowered.
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
    // The error is ignored: a hardened container may forbid reading the threads or changing their
    // priority. Log-ins of many users then delay other work.
  }
  return lowered
}

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Ticks of the clock in /proc, on every Linux that Node supports. */
const TICK_MS = 10
const [USER, SYSTEM] = [11, 12]

/** Milliseconds that a process has taken on all its threads. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program may hold anything, blanks and brackets included.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[USER]) + Number(fields[SYSTEM])) * TICK_MS
}

const NS_PER_MS = 1e6

/**
 * Milliseconds of processor time that each thread of a process has taken so far, by the name of the
 * thread; threads of one name are added up. From schedstat, which counts nanoseconds: a tick of
 * /proc is too coarse for one request.
 */
export function threadsMs(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/task`
  const sums = new Map<string, number>()
  for (const thread of readdirSync(folder)) {
    try {
      const name = readFileSync(`${folder}/${thread}/comm`, 'utf8').trim()
      const [ns] = readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')
      sums.set(name, (sums.get(name) ?? 0) + Number(ns) / NS_PER_MS)
    } catch {
      // A thread may end between the listing and the reading; its time is then in no sum.
    }
  }
  return sums
}

/** Time of each thread since an earlier reading of `threadsMs`. */
export function threadsMsSince(
  pid: number,
  before: ReadonlyMap<string, number>,
): Map<string, number> {
  return new Map([...threadsMs(pid)].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)]))
}

const WINDOW_SECONDS = 5
const WINDOWS_MAX = 12

/**
 * Waits until the processor time of processes no longer falls: after a load the compilers continue,
 * and the collector takes up to half a minute to release the heap.
 */
export async function untilIdle(pids: readonly number[]): Promise<void> {
  const totalMs = (): number => pids.reduce((sum, pid) => sum + processorMs(pid), 0)
  let last = Infinity
  for (let window = 0; window < WINDOWS_MAX; window += 1) {
    const before = totalMs()
    await sleep(WINDOW_SECONDS * 1000)
    const now = totalMs() - before
    if (now > last * 0.95) break
    last = now
  }
}

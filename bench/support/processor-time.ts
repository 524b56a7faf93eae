import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Duration of a clock tick in /proc, on every Linux that Node.js supports. */
const TICK_MS = 10
const [USER, SYSTEM] = [11, 12]

/** Processor time that a process has used in all its threads, ms. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // Searches for the last bracket, because the program name may contain any characters, including
  // blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[USER]) + Number(fields[SYSTEM])) * TICK_MS
}

const NS_PER_MS = 1e6

/**
 * Processor time that each thread of a process has used, ms, by name of the thread; threads with
 * the same name are added up. Reads schedstat, which counts nanoseconds, because a clock tick of
 * /proc is longer than one request.
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
      // The thread has ended since the list was read; its time is not counted.
    }
  }
  return sums
}

/** Processor time of each thread since an earlier result of `threadsMs`. */
export function threadsMsSince(
  pid: number,
  before: ReadonlyMap<string, number>,
): Map<string, number> {
  return new Map([...threadsMs(pid)].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)]))
}

const WINDOW_SECONDS = 5
const WINDOWS_MAX = 12

/**
 * Waits until the processor time of the processes stops falling: after a load, compilers still run,
 * and the garbage collector takes up to half a minute to release the heap.
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

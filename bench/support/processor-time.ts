import { readFileSync } from 'node:fs'

/** Of the clock that /proc counts in, on every Linux that Node runs on. */
const TICK_MS = 10
const [USER, SYSTEM] = [11, 12]

/** Milliseconds that a process has taken on all its threads. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program may hold anything, blanks and brackets included.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[USER]) + Number(fields[SYSTEM])) * TICK_MS
}

import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

interface LockTimes {
  /** Maximum time to wait while another command holds the lock. */
  readonly waitMs: number
  /** Age from which a lock counts as stale. */
  readonly staleMs: number
}

const PAUSE_MS = 20
const pause = new Int32Array(new SharedArrayBuffer(4))

/**
 * Creates a lock file, for short critical sections; only one process can hold the lock. A lock is
 * removed if its process has died, or if it is older than `staleMs`.
 * @returns the function that releases the lock.
 * @throws {CommandFailure} exit 1 when another command holds the lock for too long.
 */
export function acquireFileLock(name: string, times: LockTimes): () => void {
  const endMs = performance.now() + times.waitMs
  for (;;) {
    const release = tryLock(name, times, endMs)
    if (release !== null) return release
    Atomics.wait(pause, 0, 0, PAUSE_MS)
  }
}

/**
 * Acquires the same lock as {@link acquireFileLock}, but waits without blocking the process; for
 * critical sections that send one or two requests.
 */
export async function waitForFileLock(name: string, times: LockTimes): Promise<() => void> {
  const endMs = performance.now() + times.waitMs
  for (;;) {
    const release = tryLock(name, times, endMs)
    if (release !== null) return release
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

function tryLock(name: string, { staleMs }: LockTimes, endMs: number): (() => void) | null {
  const holder = `${hostname()} ${process.pid}\n`
  try {
    writeFileSync(name, holder, { flag: 'wx', mode: 0o600 })
    return () => rmSync(name, { force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (isLeftBehind(name, staleMs)) removeStale(name, staleMs)
  else if (performance.now() > endMs) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${name} is held by another command; if none is running, remove it`,
    )
  }
  return null
}

function isLeftBehind(name: string, staleMs: number): boolean {
  const made = statSync(name, { throwIfNoEntry: false })?.mtimeMs
  if (made === undefined) return false
  return Date.now() - made > staleMs || isOfDeadProcess(name)
}

/**
 * Whether the process that held the lock has died. False for a lock of another host: several hosts
 * may share a home folder, and a process ID is valid only on its own host.
 */
function isOfDeadProcess(name: string): boolean {
  try {
    const [host, pid] = readFileSync(name, 'utf8').trim().split(' ')
    if (host !== hostname() || !/^\d+$/.test(pid ?? '')) return false
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/**
 * Removes a stale lock. If another process has replaced the lock between the check and the removal,
 * puts the new lock back.
 */
function removeStale(name: string, staleMs: number): void {
  const aside = `${name}.${process.pid}`
  try {
    renameSync(name, aside)
    if (!isLeftBehind(aside, staleMs)) linkSync(aside, name)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'ENOENT' && code !== 'EEXIST') throw error
  }
  rmSync(aside, { force: true })
}

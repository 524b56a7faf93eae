import {
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { lastLockHolder, parsePid } from '../../store/folder/folder-lock.ts'

/** The pid file stands beside the configuration. */
export function pidFileOf(configPath: string): string {
  return join(dirname(configPath), 'pid')
}

/**
 * @param pid of this process, or of one that was started a moment ago and will write the same
 * itself.
 */
export function writePidFile(configPath: string, pid = process.pid): void {
  const path = pidFileOf(configPath)
  const partial = `${path}.${process.pid}.partial`
  writeFileSync(partial, `${pid}\n`, { mode: 0o644 })
  renameSync(partial, path)
}

/**
 * Removes the file unless it names another process: one that has written its own there meanwhile.
 */
export function removePidFile(configPath: string, pid = process.pid): void {
  if (readPid(configPath) === pid) rmSync(pidFileOf(configPath), { force: true })
}

/**
 * The process that runs this controller or router now: the one in its pid file, or the one that
 * holds the data folder, as a controller holds it before it writes its pid file. Both outlive a
 * kill -9, and the number may by then belong to anybody, so the command line of the process must
 * show that it runs this very configuration (`controller run CONFIG`, `router run CONFIG`, or
 * `cluster join CONFIG`, which goes on as a controller).
 * @param dataFolder null for a router, which has none.
 * @returns null when none does.
 */
export function runningPid(configPath: string, dataFolder: string | null): number | null {
  const pids = [readPid(configPath), dataFolder === null ? null : lastLockHolder(dataFolder)]
  return pids.find((pid) => pid !== null && runsConfiguration(pid, configPath)) ?? null
}

function readPid(configPath: string): number | null {
  try {
    return parsePid(readFileSync(pidFileOf(configPath), 'utf8'))
  } catch {
    return null
  }
}

function runsConfiguration(pid: number, configPath: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const at = words.findIndex(
      (word, here) =>
        ((word === 'controller' || word === 'router') && words[here + 1] === 'run') ||
        (word === 'cluster' && words[here + 1] === 'join'),
    )
    const argument = words[at + 2]
    if (at < 0 || argument === undefined) return false
    const named = resolve(readlinkSync(`/proc/${pid}/cwd`), argument)
    return realpathSync(named) === realpathSync(configPath)
  } catch {
    // Gone meanwhile, or a process of another user: not ours.
    return false
  }
}

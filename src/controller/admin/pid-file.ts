import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'

import { lastLockHolder, parsePid } from '../../store/folder/folder-lock.ts'

/** Path of the pid file, which is in the folder of the configuration. */
function pidFileOf(configPath: string): string {
  return join(dirname(configPath), 'pid')
}

/**
 * Writes the pid file.
 * @param pid id of this process, or of a process that was just started and will write the same id.
 */
export function writePidFile(configPath: string, pid = process.pid): void {
  const path = pidFileOf(configPath)
  const partial = `${path}.${process.pid}.partial`
  writeFileSync(partial, `${pid}\n`, { mode: 0o644 })
  renameSync(partial, path)
}

/** Removes the pid file unless another process has written its own pid into it meanwhile. */
export function removePidFile(configPath: string, pid = process.pid): void {
  if (readPid(configPath) === pid) rmSync(pidFileOf(configPath), { force: true })
}

/**
 * Finds the process that runs this controller or router: by its pid file, or by the lock of the
 * data folder, which a controller acquires before it writes its pid file. Both files survive a kill
 * -9, and the pid may then belong to another process. The command line of the process must
 * therefore contain this configuration (`controller run CONFIG`, `router run CONFIG`, or `cluster
 * join CONFIG`, which continues as a controller).
 * @param dataFolder null for a router, which has no data folder.
 * @returns null when no process runs this configuration.
 */
export function findRunningPid(configPath: string, dataFolder: string | null): number | null {
  const pids = [readPid(configPath), dataFolder === null ? null : lastLockHolder(dataFolder)]
  return pids.find((pid) => pid !== null && runsConfiguration(pid, configPath)) ?? null
}

/**
 * Finds the process of any user that runs this configuration. It reads the command line of every
 * process, because a router writes no pid file.
 * @returns null when no process runs this configuration.
 */
export function findPidByCommandLine(configPath: string): number | null {
  const pids = existsSync('/proc') ? readdirSync('/proc').map(parsePid) : []
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
    if (at < 0) return false
    const path = realpathSync(configPath)
    return words.slice(at + 2).some((word) => word !== '' && realPathOf(word, pid) === path)
  } catch {
    // The process has ended or belongs to another user, so it does not run this configuration.
    return false
  }
}

/**
 * Real path of an argument of a process; null if no file has this name. Only root and the user of
 * the process can read its folder, which a relative path needs.
 */
function realPathOf(argument: string, pid: number): string | null {
  try {
    const folder = isAbsolute(argument) ? '/' : readlinkSync(`/proc/${pid}/cwd`)
    return realpathSync(resolve(folder, argument))
  } catch {
    return null
  }
}

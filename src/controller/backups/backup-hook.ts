import { type ChildProcess, spawn } from 'node:child_process'

/** The operator's program with its first arguments. */
export interface BackupHook {
  readonly command: readonly string[]
  readonly timeoutMs: number
}

/**
 * Runs the program without a shell, as the user of the controller, with the path as last argument.
 * The program and its children form a process group, which is killed at the timeout. The output is
 * discarded because it may contain secrets.
 * @param stop kills the program when it is aborted.
 * @returns null, or the error, which completes a sentence that starts with "the hook".
 */
export async function runBackupHook(
  { command, timeoutMs }: BackupHook,
  path: string,
  stop: AbortSignal,
): Promise<string | null> {
  if (stop.aborted) return 'was not run: the controller stops'
  const [program = '', ...first] = command
  const child = spawn(program, [...first, path], {
    stdio: 'ignore',
    // @guard hook-of-backups
    detached: true,
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup(child)
  }, timeoutMs)
  const onStop = (): void => killGroup(child)
  stop.addEventListener('abort', onStop)
  try {
    const fault = await ending(child)
    return isLate ? `took longer than ${timeoutMs} ms and was killed` : fault
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', onStop)
  }
}

function ending(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be run (${error.message})`))
    child.once('exit', (code, signal) => {
      if (code === 0) resolve(null)
      else resolve(code === null ? `was ended by ${String(signal)}` : `ended with code ${code}`)
    })
  })
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has already ended, so the error is ignored.
  }
}

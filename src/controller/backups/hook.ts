import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'

/** A program that is run for each backup. */
export interface Hook {
  /** The program and its first arguments. */
  readonly command: readonly string[]
  readonly timeoutMs: number
}

/**
 * Runs the program with the path as its last argument, without a shell. What it prints is thrown away: it may hold secrets.
 * @param stop aborted: the program is killed.
 * @returns null, or what went wrong, to follow "the hook".
 */
export async function runHook(
  { command, timeoutMs }: Hook,
  path: string,
  stop: AbortSignal,
): Promise<string | null> {
  const [program = '', ...words] = command
  // A group of its own, so that all that it starts can be ended with it.
  const child = spawn(program, [...words, path], { stdio: 'ignore', detached: true })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup(child)
  }, timeoutMs)
  const onStop = (): void => killGroup(child)
  stop.addEventListener('abort', onStop)
  try {
    const ended = await ending(child)
    return isLate ? `took longer than ${timeoutMs} ms and was killed` : ended
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
    // It has ended by itself.
  }
}

import { type Hook, runProgram } from '../run-program.ts'

/**
 * Runs the program with the path as its last argument, without a shell. What it prints is thrown
 * away: it may hold secrets.
 * @param stop aborted: the program is killed.
 * @returns null, or what went wrong, to follow "the hook".
 */
export async function runHook(hook: Hook, path: string, stop: AbortSignal): Promise<string | null> {
  const { fault } = await runProgram(hook, { words: [path], stop })
  return fault
}

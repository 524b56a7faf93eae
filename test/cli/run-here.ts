import { vi } from 'vitest'

import { runCommandLine as runProgram } from '../../src/cli/program.ts'
import type { Finished } from './support.ts'

/**
 * Runs the program in this process: a separate process for each command takes a second on a busy
 * machine.
 */
export async function runHere(
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<Finished> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const written = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text)
      return true
    }),
  )
  const before = process.exitCode
  process.exitCode = undefined
  try {
    await runProgram(['node', 'flotilla', ...words])
    return { code: Number(process.exitCode), ...written }
  } finally {
    process.exitCode = before
    for (const spy of spies) spy.mockRestore()
    vi.unstubAllEnvs()
  }
}

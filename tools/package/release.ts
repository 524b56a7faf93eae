import { spawnSync } from 'node:child_process'

/** The program to pack, and the folders for it. */
export interface Release {
  /** The built program. */
  readonly program: string
  readonly out: string
  readonly version: string
  /** Time of all files: of the commit, in seconds. */
  readonly timeS: number
  /** Level of xz. */
  readonly level: string
  /** A folder for files that do not stay. */
  readonly work: string
}

/** Runs a program. @throws when it fails. @returns what it printed. */
export function runTool(name: string, words: readonly string[], timeS?: number): string {
  const env = { ...process.env, ...(timeS !== undefined && { SOURCE_DATE_EPOCH: `${timeS}` }) }
  const { status, stdout, stderr, error } = spawnSync(name, words, { encoding: 'utf8', env })
  if (status === 0) return stdout
  throw new Error(`${name} ${words.join(' ')} failed: ${error?.message ?? stderr}`)
}

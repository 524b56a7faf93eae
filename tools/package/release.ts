import { spawnSync } from 'node:child_process'

/** The program to pack, and the folders that packing uses. */
export interface Release {
  /** The built program. */
  readonly program: string
  readonly out: string
  readonly version: string
  /** Time that all files get: the time of the commit, in seconds. */
  readonly timeS: number
  /** Compression level of xz. */
  readonly level: string
  /** Folder for temporary files. */
  readonly work: string
}

/** Runs a program. @throws if it fails. @returns its output. */
export function runTool(name: string, words: readonly string[], timeS?: number): string {
  const env = { ...process.env, ...(timeS !== undefined && { SOURCE_DATE_EPOCH: `${timeS}` }) }
  const { status, stdout, stderr, error } = spawnSync(name, words, { encoding: 'utf8', env })
  if (status === 0) return stdout
  throw new Error(`${name} ${words.join(' ')} failed: ${error?.message ?? stderr}`)
}

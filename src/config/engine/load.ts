import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

import type { Environment } from './environment.ts'
import type { ConfigFault } from './fault.ts'
import { ConfigReader, type EffectiveValue } from './reader.ts'
import type { Fields } from './schema.ts'
import { parseYamlTree } from './yaml-tree.ts'

export const CONFIG_BYTES_MAX = 1024 * 1024
/**
 * Faults, and warnings, that are reported of one file; a file full of unknown keys has thousands.
 */
export const CONFIG_FAULTS_MAX = 1000

/** All that a program may configure, and the rules between its keys. */
export interface ConfigTable<T> {
  readonly fields: Fields
  /** Prefix of variables that override keys; null: variables are filled into texts instead. */
  readonly overridePrefix: string | null
  /**
   * Judges the rules between keys; faults go to the reader, which may have some already.
   * @returns the configuration in which every value has one place.
   */
  readonly settle: (values: T, reader: ConfigReader) => T
}

export type LoadedConfig<T> =
  | {
      readonly ok: true
      /** Checked values, all defaults filled in, all paths absolute. */
      readonly config: T
      /** Absolute. */
      readonly path: string
      readonly warnings: readonly ConfigFault[]
      readonly effective: readonly EffectiveValue[]
    }
  | {
      readonly ok: false
      readonly faults: readonly ConfigFault[]
      readonly warnings: readonly ConfigFault[]
    }

/**
 * Reads and judges a configuration as a whole: the YAML file, then the environment. Every fault is
 * found in one go; nothing is thrown for a bad file.
 */
export function loadConfig<T>(
  table: ConfigTable<T>,
  path: string,
  environment: Environment,
): LoadedConfig<T> {
  const file = resolve(path)
  const read = readFile(file)
  if (typeof read === 'string') return parseConfig(table, file, read, environment)
  return { ok: false, faults: [{ source: file, line: null, key: '', ...read }], warnings: [] }
}

/** Does what `loadConfig` does with text already read; paths start at the folder of `file`. */
export function parseConfig<T>(
  table: ConfigTable<T>,
  file: string,
  text: string,
  environment: Environment,
): LoadedConfig<T> {
  const parsed = parseYamlTree(text)
  if (!parsed.ok) {
    const faults = parsed.faults.map((fault) => ({ source: file, key: '', ...fault }))
    return { ok: false, faults: byLine(faults), warnings: [] }
  }
  const { fields, overridePrefix, settle } = table
  const reader = new ConfigReader({ file, environment, overridePrefix })
  // A table gives values of the type that was derived from it.
  const config = settle(reader.read(fields, parsed.tree) as T, reader)
  const [faults, warnings] = [byLine(reader.faults), byLine(reader.warnings)]
  if (faults.length > 0) return { ok: false, faults, warnings }
  return { ok: true, config, path: file, warnings, effective: reader.effective }
}

function byLine(faults: readonly ConfigFault[]): ConfigFault[] {
  return faults.slice(0, CONFIG_FAULTS_MAX).sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
}

function readFile(file: string): string | { readonly problem: string } {
  try {
    const status = statSync(file)
    if (status.isDirectory()) return { problem: 'is a folder; name the file in it' }
    if (!status.isFile()) return { problem: 'is not a regular file' }
    if (status.size > CONFIG_BYTES_MAX) {
      return { problem: `is larger than ${CONFIG_BYTES_MAX} bytes` }
    }
    const text = readFileSync(file, 'utf8')
    return text.includes('\0') ? { problem: 'is not a text file' } : text
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'file not found' }
    if (code === 'EACCES') return { problem: 'no permission to read it' }
    return { problem: `cannot be read: ${String(error)}` }
  }
}

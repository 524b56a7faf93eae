import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

import type { Environment } from './environment.ts'
import { type ConfigFault, shortenText } from './fault.ts'
import { ConfigReader, type EffectiveValue, type UnknownKeys } from './reader.ts'
import type { SchemaFields } from './schema.ts'
import { parseYamlTree, yamlTreeLimits } from './yaml-tree.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/** Maximum bytes of a configuration file; a larger file is refused. */
export const CONFIG_BYTES_MAX = 1024 * 1024
/**
 * Maximum number of faults, and of warnings, reported for one file. The number is limited, because
 * a file that has only unknown keys would have thousands.
 */
export const CONFIG_FAULTS_MAX = 1000

/** All keys of a program's configuration, and the rules between them. */
export interface ConfigTable<T> {
  readonly fields: SchemaFields
  /**
   * Prefix of environment variables that override keys. null: variables do not override keys;
   * instead, `$NAME` and `${NAME}` within values are replaced.
   */
  readonly overridePrefix: string | null
  /**
   * Whether unknown and duplicate keys are faults or warnings. A file that is also for other
   * programs may contain both. In some sections, misspelled keys are always faults.
   */
  readonly unknownKeys: UnknownKeys
  /**
   * Checks the rules between keys and reports faults to the reader, which may already contain
   * faults.
   * @returns the configuration, with each value under its canonical key.
   */
  readonly settle: (values: T, reader: ConfigReader) => T
}

export type LoadedConfig<T> =
  | {
      readonly ok: true
      /** Validated values, with defaults and absolute paths. */
      readonly config: T
      /** Absolute path of the configuration file. */
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
 * Reads and validates a whole configuration: the YAML file, then the environment. Returns up to
 * `CONFIG_FAULTS_MAX` faults together; it does not throw for an invalid file.
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

/**
 * Like `loadConfig`, for text that was already read; relative paths are relative to the folder of
 * `file`.
 */
export function parseConfig<T>(
  table: ConfigTable<T>,
  file: string,
  text: string,
  environment: Environment,
): LoadedConfig<T> {
  const duplicates = table.unknownKeys === 'faults' ? 'are faults' : 'replace'
  const parsed = parseYamlTree(text, yamlTreeLimits, duplicates)
  if (!parsed.ok) {
    const faults = parsed.faults.map((fault) => ({ source: file, key: '', ...fault }))
    return { ok: false, faults: byLine(faults), warnings: [] }
  }
  const { fields, overridePrefix, unknownKeys, settle } = table
  const reader = new ConfigReader({ file, environment, overridePrefix, unknownKeys })
  for (const { line, key } of parsed.duplicates) {
    const problem = `${shortenText(key)} is given twice in its section, and the last one counts`
    reader.warnings.push({ source: file, line, key: '', problem })
  }
  // The cast is safe: the type is derived from the same table that the reader uses.
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
    const text = decodeText(readFileSync(file))
    return text.includes('\0') ? { problem: 'is not a text file' } : text
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'file not found' }
    if (code === 'EACCES') return { problem: 'no permission to read it' }
    return { problem: `cannot be read: ${String(error)}` }
  }
}

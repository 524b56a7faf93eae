import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import type { ConfigFault } from '../controller/load.ts'
import { parseYamlTree } from '../engine/yaml-tree.ts'
import type { RouterEnvironment } from '../engine/environment.ts'
import { ConfigReader, type EffectiveValue } from '../engine/reader.ts'
import { settleRelations, withEndpointsFile } from './relations.ts'
import { type RouterConfig, routerFields } from './table.ts'

export const ROUTER_CONFIG_BYTES_MAX = 1024 * 1024
/**
 * Of the faults and of the warnings that are told of one file; a file full of unknown keys has
 * thousands.
 */
export const CONFIG_FAULTS_MAX = 1000

export type LoadedRouterConfig =
  | {
      readonly ok: true
      readonly config: RouterConfig
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
 * Reads and judges a router's configuration as a whole; every fault is found in one go, and nothing
 * is thrown for a bad file.
 */
export function loadRouterConfig(path: string, environment: RouterEnvironment): LoadedRouterConfig {
  const file = resolve(path)
  const read = readFile(file)
  if (typeof read === 'string') return parseRouterConfig(file, read, environment)
  return { ok: false, faults: [{ source: file, line: null, key: '', ...read }], warnings: [] }
}

/** As `loadRouterConfig`, for text already read; relative paths start at the folder of `file`. */
export function parseRouterConfig(
  file: string,
  text: string,
  environment: RouterEnvironment,
): LoadedRouterConfig {
  const parsed = parseYamlTree(text)
  if (!parsed.ok) {
    const faults = parsed.faults.map(({ line, problem }) => ({
      source: file,
      line,
      key: '',
      problem,
    }))
    return { ok: false, faults: faults.slice(0, CONFIG_FAULTS_MAX), warnings: [] }
  }
  const reader = new ConfigReader(file, dirname(file), environment)
  const read = reader.read(routerFields, parsed.tree) as unknown as RouterConfig
  const settled = settleRelations(read, reader)
  const warnings = reader.warnings.slice(0, CONFIG_FAULTS_MAX)
  const faults = reader.faults.slice(0, CONFIG_FAULTS_MAX)
  if (faults.length > 0) return { ok: false, faults: byLine(faults), warnings: byLine(warnings) }
  const config = withEndpointsFile(settled, file)
  const effective = reader.effective.filter(isTold).map((one) => withFolder(one, config))
  return { ok: true, config, path: file, warnings: byLine(warnings), effective }
}

/** The second place of the addressing is told only where it was used. */
function isTold({ key, source }: EffectiveValue): boolean {
  return (
    source.kind !== 'default' || !/^ctrl\.options\.(?:bind|default|endpoint|heartbeats)/.test(key)
  )
}

function withFolder(one: EffectiveValue, config: RouterConfig): EffectiveValue {
  const isDefaultFile = one.key === 'ctrl.endpointsFile' && one.source.kind === 'default'
  return isDefaultFile ? { ...one, value: config.ctrl.endpointsFile } : one
}

function byLine(faults: readonly ConfigFault[]): ConfigFault[] {
  return [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
}

function readFile(file: string): string | { readonly problem: string } {
  try {
    const status = statSync(file)
    if (status.isDirectory()) return { problem: 'is a folder; name the file in it' }
    if (!status.isFile()) return { problem: 'is not a regular file' }
    if (status.size > ROUTER_CONFIG_BYTES_MAX) {
      return { problem: `is larger than ${ROUTER_CONFIG_BYTES_MAX} bytes` }
    }
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'file not found' }
    if (code === 'EACCES') return { problem: 'no permission to read it' }
    return { problem: `cannot be read: ${String(error)}` }
  }
}

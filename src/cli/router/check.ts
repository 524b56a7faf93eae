import { formatFault } from '../../config/engine/fault.ts'
import { CommandFailure, EXIT_USAGE } from '../../controller/failure.ts'
import { type LoadedRouterConfig, loadRouterConfig } from '../../config/router/load.ts'
import { omissionsOf, sectionsWithoutData } from '../../config/router/omissions.ts'
import type { EffectiveValue } from '../../config/engine/reader.ts'
import { unsupportedNode } from '../../lib/runtime/supported-node.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'

export interface CheckRouterOptions {
  readonly print?: boolean
  readonly json?: boolean
}

export type CheckedRouterConfig = Extract<LoadedRouterConfig, { ok: true }>

/** @throws {CommandFailure} exit 2 after one line for each fault. */
export function checkedRouterConfig(path: string): CheckedRouterConfig {
  const loaded = loadRouterConfig(path, process.env)
  for (const warning of loaded.warnings) {
    printNote(`flotilla: warning: ${formatFault(warning)}`)
  }
  const unsupported = unsupportedNode()
  if (unsupported !== null) printNote(`flotilla: warning: ${unsupported}`)
  if (loaded.ok) return loaded
  for (const fault of loaded.faults) printNote(`flotilla: ${formatFault(fault)}`)
  throw new CommandFailure(EXIT_USAGE, faultCount(loaded.faults.length))
}

/**
 * Checks the configuration of a router without starting it.
 * @throws {CommandFailure} exit 2.
 */
export function checkRouter(path: string, options: CheckRouterOptions): void {
  if (options.json === true) {
    checkAsJson(path, options)
    return
  }
  const { config, effective } = checkedRouterConfig(path)
  if (options.print === true) {
    printLine(effective.map(effectiveLine).join('\n'))
    return
  }
  printLine(`${path}: the configuration is valid`)
  for (const note of [...omissionsOf(config), ...sectionsWithoutData(config)]) {
    printLine(`note: ${note}`)
  }
}

function checkAsJson(path: string, { print }: CheckRouterOptions): void {
  const loaded = loadRouterConfig(path, process.env)
  const { ok, warnings } = loaded
  const faults = loaded.ok ? [] : loaded.faults
  const notes = loaded.ok
    ? [...omissionsOf(loaded.config), ...sectionsWithoutData(loaded.config)]
    : []
  const effective = loaded.ok && print === true ? { effective: loaded.effective } : {}
  printJson({ isValid: ok, faults, warnings, notes, ...effective })
  if (!ok) throw new CommandFailure(EXIT_USAGE, faultCount(faults.length))
}

function faultCount(count: number): string {
  const faults = count === 1 ? '1 fault' : `${count} faults`
  return `${faults} in the configuration; 'flotilla router options' lists every key`
}

/** `ctrl.startupTimeout = 30s  # default`. */
function effectiveLine({ key, value, source, hasEffect }: EffectiveValue): string {
  const shown = value === '' ? '(none)' : value.replaceAll('\n', '\\n')
  const effect = hasEffect ? '' : ', no effect in this version'
  return `${key} = ${shown}  # ${sourceText(source)}${effect}`
}

function sourceText(source: EffectiveValue['source']): string {
  switch (source.kind) {
    case 'file':
      return `line ${source.line}`
    case 'environment':
      return `${source.line === null ? '' : `line ${source.line}, `}environment ${source.names.join(', ')}`
    case 'default':
      return 'default'
  }
}

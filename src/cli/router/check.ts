import { formatConfigFault } from '../../config/engine/fault.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { loadRouterConfig } from '../../config/router/load.ts'
import { routerConfigNotes } from '../../config/router/section-notes.ts'
import type { EffectiveValue } from '../../config/engine/reader.ts'
import { unsupportedNodeReason } from '../../lib/runtime/unsupported-node.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { warningCount, withWarnings } from '../terminal/warning-count.ts'
import { type CheckedRouterConfig, findHostStartFaults } from './host-faults.ts'

export interface CheckRouterOptions {
  /** True: checks only the configuration, not this host. */
  readonly configOnly?: boolean
  /** True: refuses a configuration with warnings. */
  readonly strict?: boolean
  readonly print?: boolean
  readonly json?: boolean
}

/**
 * Loads a router configuration, and prints its warnings.
 * @throws {CommandFailure} exit 2, after printing one line for each fault.
 */
export function loadCheckedRouterConfig(path: string): CheckedRouterConfig {
  const loaded = loadRouterConfig(path, process.env)
  for (const warning of loaded.warnings) {
    printNote(`flotilla: warning: ${formatConfigFault(warning)}`)
  }
  const unsupported = unsupportedNodeReason()
  if (unsupported !== null) printNote(`flotilla: warning: ${unsupported}`)
  if (loaded.ok) return loaded
  for (const fault of loaded.faults) printNote(`flotilla: ${formatConfigFault(fault)}`)
  throw new CommandFailure(EXIT_USAGE, faultCount(loaded.faults.length))
}

/**
 * Checks the configuration of a router and whether the router can run on this host, without
 * starting it.
 * @throws {CommandFailure} exit 2 for the configuration, 1 for the host.
 */
export async function checkRouter(path: string, options: CheckRouterOptions): Promise<void> {
  if (options.json === true) {
    await checkAsJson(path, options)
    return
  }
  const checked = loadCheckedRouterConfig(path)
  const { config, effective, warnings } = checked
  refuseWarnings(path, warnings.length, options)
  if (options.print === true) {
    printLine(effective.map(effectiveLine).join('\n'))
    return
  }
  const { faults, notes } = await findingsHere(checked, options)
  if (faults.length > 0) {
    for (const fault of faults) printNote(`flotilla: ${formatConfigFault(fault)}`)
    throw new CommandFailure(EXIT_FAILED, `${path}: the router cannot start on this host`)
  }
  printLine(`${path}: the configuration is valid${withWarnings(warnings.length)}`)
  for (const note of [...routerConfigNotes(config), ...notes]) {
    printLine(`note: ${note}`)
  }
}

async function findingsHere(
  checked: CheckedRouterConfig,
  { configOnly = false }: CheckRouterOptions,
): ReturnType<typeof findHostStartFaults> {
  return configOnly ? { faults: [], notes: [] } : await findHostStartFaults(checked)
}

async function checkAsJson(path: string, options: CheckRouterOptions): Promise<void> {
  const loaded = loadRouterConfig(path, process.env)
  const { warnings } = loaded
  if (!loaded.ok) {
    printJson({ isValid: false, faults: loaded.faults, warnings, notes: [] })
    throw new CommandFailure(EXIT_USAGE, faultCount(loaded.faults.length))
  }
  const { config, effective } = loaded
  const host = await findingsHere(loaded, options)
  const notes = [...routerConfigNotes(config), ...host.notes]
  const { faults } = host
  const printed = options.print === true ? { effective } : {}
  const isRefused = options.strict === true && warnings.length > 0
  const isValid = faults.length === 0 && !isRefused
  printJson({ isValid, faults, warnings, notes, ...printed })
  refuseWarnings(path, warnings.length, options)
  if (faults.length > 0) {
    throw new CommandFailure(EXIT_FAILED, `${path}: the router cannot start on this host`)
  }
}

/** @throws {CommandFailure} exit 2 with --strict, for a configuration with warnings. */
function refuseWarnings(path: string, count: number, { strict = false }: CheckRouterOptions): void {
  if (!strict || count === 0) return
  const sentence = `${path}: ${warningCount(count)}, which --strict refuses`
  throw new CommandFailure(EXIT_USAGE, sentence)
}

function faultCount(count: number): string {
  const faults = count === 1 ? '1 fault' : `${count} faults`
  return `${faults} in the configuration; 'flotilla router options' lists every key`
}

/** One effective value as a line, such as `ctrl.startupTimeout = 30s  # default`. */
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

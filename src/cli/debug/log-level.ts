import type { LogLevelState, SwitchableLogLevel } from '../../api/host/log-level-control.ts'
import { type ConnectionOptions, openClusterConnection } from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'

export interface LogLevelOptions extends ConnectionOptions {
  readonly json?: boolean
}

/** Prints the log level of a controller; if a level is given, sets it first. */
export async function showOrSetLogLevel(
  level: SwitchableLogLevel | undefined,
  options: LogLevelOptions,
): Promise<void> {
  const ask = openClusterConnection(options)
  const asked = level === undefined ? ask('log-level', {}) : ask('set-log-level', { level })
  const state = (await asked) as LogLevelState
  if (options.json === true) printJson(state)
  else printLine(`${state.level} (after a restart: ${state.configured})`)
}

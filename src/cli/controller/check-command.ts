import { loadControllerConfig } from '../../config/controller/load.ts'
import { formatFault } from '../../config/engine/fault.ts'
import { systemClock } from '../../lib/clock.ts'
import { asOwnerOf } from '../../controller/as-owner.ts'
import { preflight } from '../../controller/start/check.ts'
import { checkLog, NOTHING } from './check-log.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/failure.ts'
import { printJson, printLine } from '../terminal/output.ts'

/**
 * `controller check CONFIG`: what a start would stumble over, and nothing else is done.
 * @throws {CommandFailure} exit 2 for the configuration, 1 for everything around it.
 */
export async function checkController(
  path: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const loaded = loadControllerConfig(path, process.env)
  if (!loaded.ok) {
    const lines = loaded.faults.map(formatFault)
    if (options.json === true) printJson({ ok: false, faults: lines, warnings: [] })
    throw new CommandFailure(EXIT_USAGE, lines.join('\n'))
  }
  const { config } = loaded
  // Root would leave files that the controller cannot read, and can open what it cannot.
  const { found, log } = await asOwnerOf(config.data, async () => {
    const found = await preflight(config, systemClock.nowMs())
    return { found, log: found.faults.length > 0 ? NOTHING : checkLog(config) }
  })
  const faults = [...found.faults, ...log.faults]
  const warnings = [...found.warnings, ...log.warnings]
  if (options.json === true) printJson({ ok: faults.length === 0, faults, warnings })
  for (const warning of warnings) process.stderr.write(`flotilla: warning: ${warning}\n`)
  if (faults.length > 0) throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
  if (options.json !== true) printLine(`${loaded.path}: ${loaded.config.id} can start`)
}

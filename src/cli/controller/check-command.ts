import { loadControllerConfig } from '../../config/controller/load.ts'
import { formatConfigFault } from '../../config/engine/fault.ts'
import { systemClock } from '../../lib/clock.ts'
import { findRunningPid } from '../../controller/admin/pid-file.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { backupWarnings, runPreflight } from '../../controller/start/preflight.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { withWarnings } from '../terminal/warning-count.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { findLogDamage } from '../../store/log/open-log.ts'
import { readMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import {
  hasOtherVoters,
  membershipFromRecord,
  otherMeshAddresses,
} from '../../controller/start/known-voters.ts'
import { knownSeeds } from '../../controller/start/known-seeds.ts'
import { hasNoData } from '../../controller/start/set-aside.ts'
import { errorMessage } from '../../lib/error-code.ts'

/**
 * `controller check CONFIG` reports faults that would prevent a start of the controller, and does
 * not repair them. With `configOnly` it checks only the configuration.
 * @throws {CommandFailure} exit 2 for the configuration, 1 for other faults.
 */
export async function checkController(
  path: string,
  options: { readonly configOnly?: boolean; readonly json?: boolean },
): Promise<void> {
  const loaded = loadControllerConfig(path, process.env)
  if (!loaded.ok) {
    const lines = loaded.faults.map(formatConfigFault)
    if (options.json === true) printJson({ ok: false, faults: lines, warnings: [], notes: [] })
    throw new CommandFailure(EXIT_USAGE, lines.join('\n'))
  }
  const { config } = loaded
  if (options.configOnly === true) {
    const warnings = await runAsFileOwner(config.data, () => backupWarnings(config))
    if (options.json === true) {
      printJson({ ok: true, faults: [], warnings, notes: [] })
      return
    }
    for (const warning of warnings) printNote(`flotilla: warning: ${warning}`)
    printLine(`${loaded.path}: the configuration is valid${withWarnings(warnings.length)}`)
    return
  }
  const pid = findRunningPid(loaded.path, config.data)
  // Checks as the owner of the data folder: root would create files that the controller cannot
  // read, and can itself read files that the controller cannot.
  const { found, log } = await runAsFileOwner(config.data, async () => {
    const found = await runPreflight(config, systemClock.nowMs(), pid !== null)
    const isLogChecked = found.faults.length === 0 && pid === null
    return { found, log: isLogChecked ? checkRaftLog(config) : NO_FINDINGS }
  })
  const faults = [...found.faults, ...log.faults]
  const warnings = [...found.warnings, ...log.warnings]
  const notes = pid === null ? [] : [runningNote(config.id, pid)]
  if (options.json === true) printJson({ ok: faults.length === 0, faults, warnings, notes })
  for (const warning of warnings) printNote(`flotilla: warning: ${warning}`)
  if (faults.length > 0) throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
  if (options.json === true) return
  printLine(`${loaded.path}: ${config.id} can start`)
  for (const note of notes) printLine(`note: ${note}`)
}

function runningNote(id: string, pid: number): string {
  return `${id} is running with this configuration (process ${pid}), so its ports and its log were not tested`
}

interface Checked {
  readonly id: string
  readonly data: string
  readonly identity: Pick<ControllerConfig['identity'], 'key'>
  readonly cluster: Pick<ControllerConfig['cluster'], 'seeds'>
}

interface Findings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

export const NO_FINDINGS: Findings = { faults: [], warnings: [] }

/**
 * Reports damage to the Raft log: as a warning if the next start would repair it, otherwise as a
 * fault. No controller may be running on this data folder.
 */
export function checkRaftLog(config: Checked): Findings {
  const { id, data } = config
  if (hasNoData(data)) return NO_FINDINGS
  try {
    const damage = findLogDamage(data)
    if (damage === null) return NO_FINDINGS
    const known = membershipFromRecord(readMembershipCacheFile(data))
    const hasPeers = hasOtherVoters(id, [known])
    const canAsk = knownSeeds(config).length + otherMeshAddresses(id, known).length > 0
    if (damage.code === 'VOTE_LOST' && hasPeers && canAsk) {
      const warning = `data: ${damage.finding}; a start requests re-admission with an empty data folder`
      return { ...NO_FINDINGS, warnings: [warning] }
    }
    if (damage.code === 'CORRUPT' && hasPeers) {
      const warning = `data: ${damage.finding}; a start repairs it from the other controllers`
      return { ...NO_FINDINGS, warnings: [warning] }
    }
    return { ...NO_FINDINGS, faults: [`data: ${damage.message}`] }
  } catch (error) {
    return { ...NO_FINDINGS, faults: [`data: ${errorMessage(error)}`] }
  }
}

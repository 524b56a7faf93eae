import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printNote } from '../terminal/output.ts'
import { applyNetwork, type ApplyOptions } from './apply.ts'
import { parseYamlDocument } from './network-file.ts'
import { readNetworkText, requireNoFaults } from './file-checks.ts'
import { fillFromCurrentNetwork, parseOpenZitiExport } from './openziti-export.ts'

export interface ImportOptions extends Omit<ApplyOptions, 'file' | 'prune'> {
  readonly acceptLostPostureChecks?: boolean
}

/**
 * Applies an export of the OpenZiti CLI. Fields that the export does not contain keep their values
 * in this network.
 */
export async function importOpenZitiExport(path: string, options: ImportOptions): Promise<void> {
  const { tree, faults } = parseYamlDocument(readNetworkText(path))
  requireNoFaults(path, faults)
  if (tree === null) return
  const found = parseOpenZitiExport(tree)
  requireNoFaults(path, found.faults)
  for (const note of found.notes) printNote(`flotilla: ${path}: ${note}`)
  if (found.policiesInDoubt > 0 && options.acceptLostPostureChecks !== true) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${path}: the export has posture checks but not which of its ${found.policiesInDoubt} service policies require them, so they would grant more access than before. Add postureCheckRoles to the policies in the file and pass --accept-lost-posture-checks. Nothing changed`,
    )
  }
  await applyNetwork(path, found, options, fillFromCurrentNetwork)
}

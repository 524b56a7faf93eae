import type { ControllerConfig } from '../../config/controller/options.ts'
import { findDamage } from '../../store/log/open-log.ts'
import { readRosterFile } from '../../store/folder/membership-cache-file.ts'
import { hasOtherVoters, membersOfRoster, meshesOf } from '../../controller/start/known-voters.ts'
import { hasNoData } from '../../controller/start/set-aside.ts'
import { errorMessage } from '../../lib/error-code.ts'

interface Checked {
  readonly id: string
  readonly data: string
  readonly cluster: Pick<ControllerConfig['cluster'], 'seeds'>
}

interface Findings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

export const NOTHING: Findings = { faults: [], warnings: [] }

/**
 * Whether a start would find the log damaged, and what it would do about it. No controller may be
 * running on it.
 */
export function checkLog({ id, data, cluster }: Checked): Findings {
  if (hasNoData(data)) return NOTHING
  try {
    const damage = findDamage(data)
    if (damage === null) return NOTHING
    const known = membersOfRoster(readRosterFile(data))
    const hasPeers = hasOtherVoters(id, [known])
    const canAsk = cluster.seeds.length + meshesOf(id, known).length > 0
    if (damage.code === 'VOTE_LOST' && hasPeers && canAsk) {
      const warning = `data: ${damage.finding}; a start requests re-admission with an empty data folder`
      return { ...NOTHING, warnings: [warning] }
    }
    if (damage.code === 'CORRUPT' && hasPeers) {
      const warning = `data: ${damage.finding}; a start repairs it from the other controllers`
      return { ...NOTHING, warnings: [warning] }
    }
    return { ...NOTHING, faults: [`data: ${damage.message}`] }
  } catch (error) {
    return { ...NOTHING, faults: [`data: ${errorMessage(error)}`] }
  }
}

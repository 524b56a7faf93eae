import { requestOf } from '../client/connection.ts'
import { askController } from '../client/admin-socket.ts'
import type { ListedMember } from '../../api/cluster/cluster-status.ts'
import { shellWord } from '../terminal/output.ts'
import type { ControllerPlan, ProcessPlan } from './plan.ts'

const ANSWER_MS_MAX = 5000

/**
 * The notice of a controller or router that has ended. A start brings one back that was stopped or
 * has failed; one that was removed ends as often as it is started.
 */
export async function linesOfEnd(
  { id, program: kind, dataFolder, logPath, configPath }: ProcessPlan,
  how: string,
  others: readonly ControllerPlan[],
  program: string,
): Promise<readonly string[]> {
  if (kind === 'controller' && (await wasRemoved(id, others))) {
    return [
      `${id} was removed from the cluster and exited; its log is ${logPath}, and ${dataFolder} can be deleted`,
    ]
  }
  const command = `${shellWord(program)} ${kind} run ${shellWord(configPath)}`
  return [`${id} ${how}; its log is ${logPath}. To start it again:`, `  ${command}`]
}

/** One of the others that run knows of no such member; those that lag behind may still do. */
async function wasRemoved(id: string, others: readonly ControllerPlan[]): Promise<boolean> {
  const listing = requestOf('list', {}, ANSWER_MS_MAX)
  for (const { dataFolder } of others) {
    try {
      const members = await askController(dataFolder, listing)
      if (!(members as readonly ListedMember[]).some((member) => member.id === id)) return true
    } catch {
      // It does not run, or is about to end as well: the next one is asked.
    }
  }
  return false
}

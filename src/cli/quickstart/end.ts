import { requestOf } from '../client/connection.ts'
import { askController } from '../client/admin-socket.ts'
import type { ListedMember } from '../../api/cluster/cluster-status.ts'
import { shellWord } from '../terminal/output.ts'
import type { ControllerPlan, ProcessPlan } from './plan.ts'

const ANSWER_MS_MAX = 5000

/**
 * Message for a controller or router that has exited. A stopped or failed one can be started again;
 * a removed one would exit again.
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

/** A running member does not list it; members that lag behind may still do. */
async function wasRemoved(id: string, others: readonly ControllerPlan[]): Promise<boolean> {
  const listing = requestOf('list', {}, ANSWER_MS_MAX)
  for (const { dataFolder } of others) {
    try {
      const members = await askController(dataFolder, listing)
      if (!(members as readonly ListedMember[]).some((member) => member.id === id)) return true
    } catch {
      // This one does not run, or is about to exit as well: try the next one.
    }
  }
  return false
}

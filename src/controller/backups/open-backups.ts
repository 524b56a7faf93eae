import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { ActionLog } from '../../cluster/action-recorder.ts'
import type { Log } from '../../cluster/log.ts'
import type { ControllerConfig } from '../../config/options.ts'
import type { AdminVerbs } from '../admin/server.ts'
import { BackupFolder } from './backup-folder.ts'
import { BackupSchedule } from './backup-schedule.ts'
import type { BackupParts } from './take-backup.ts'
import { backupVerbs } from './verbs.ts'

/** What a controller does about backups. */
export interface Backups {
  readonly verbs: AdminVerbs
  /** When the newest one was taken here by the schedule, UTC ms; 0: none was. null: there is no schedule. */
  readonly lastTakenMs: () => number | null
  /** Begins to take them by itself, where the configuration says so. */
  start(): void
  close(): Promise<void>
}

export function openBackups(
  config: ControllerConfig,
  clusterNode: ClusterNode,
  log: Log,
  backups: BackupParts,
): Backups {
  const schedule = scheduleOf(config, clusterNode, log, backups)
  return {
    verbs: backupVerbs({ ...backups, actions: new ActionLog(clusterNode, log) }),
    lastTakenMs: () => schedule?.lastTakenMs ?? null,
    start: () => schedule?.start(),
    close: async () => await schedule?.close(),
  }
}

function scheduleOf(
  config: ControllerConfig,
  clusterNode: ClusterNode,
  log: Log,
  backups: BackupParts,
): BackupSchedule | null {
  const { folder, recipient, everyMs, keep, hook, hookTimeoutMs } = config.backup
  if (folder === null || recipient === null) return null
  return new BackupSchedule({
    ...{ backups, alarms: clusterNode.alarms, log, everyMs, keep, recipientPath: recipient },
    folder: new BackupFolder({
      ...{ folder, controllerId: config.id, freeBytesMin: config.log.lowSpaceBytes },
    }),
    hook: hook.length === 0 ? null : { command: hook, timeoutMs: hookTimeoutMs },
  })
}

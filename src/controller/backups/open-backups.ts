import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { ActionLog } from '../../cluster/action-recorder.ts'
import type { Logger } from '../../cluster/logger.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { StateMachine } from '../../fsm/machine.ts'
import type { BackupControl } from '../../api/backups/backup-control.ts'
import type { RestoreControl } from '../../api/backups/restore-control.ts'
import { BackupFolder } from './backup-folder.ts'
import { BackupSchedule } from './backup-schedule.ts'
import type { BackupDeps } from './take-backup.ts'
import { backupControl } from './backup-control.ts'
import { restoreControl } from './restore-control.ts'

/** Backups and restores of a controller. */
interface Backups {
  readonly control: BackupControl
  readonly restores: RestoreControl
  /**
   * Time of the newest scheduled backup of this controller, UTC ms; 0 if there is none. null
   * without a schedule.
   */
  readonly lastTakenMs: () => number | null
  /** Starts the schedule, if one is configured. */
  start(): void
  close(): Promise<void>
}

export function openBackups(
  config: ControllerConfig,
  clusterNode: ClusterNode,
  log: Logger,
  backups: BackupDeps & { readonly machine: Pick<StateMachine, 'onRecordsReplaced'> },
): Backups {
  const folder = folderOf(config)
  const schedule = scheduleOf(config, clusterNode, log, backups, folder)
  backups.machine.onRecordsReplaced = (index) => {
    log.warn({ index }, `replaced all records by those of a backup at index ${index}`)
  }
  return {
    control: backupControl({ ...backups, actions: new ActionLog(clusterNode, log), folder }),
    restores: restoreControl({ ...backups, proposer: clusterNode }),
    lastTakenMs: () => schedule?.lastTakenMs ?? null,
    start: () => schedule?.start(),
    close: async () => await schedule?.close(),
  }
}

function folderOf({ backup: { folder }, id, log }: ControllerConfig): BackupFolder | null {
  if (folder === null) return null
  return new BackupFolder({ folder, controllerId: id, freeBytesMin: log.lowSpaceBytes })
}

function scheduleOf(
  config: ControllerConfig,
  clusterNode: ClusterNode,
  log: Logger,
  backups: BackupDeps,
  folder: BackupFolder | null,
): BackupSchedule | null {
  const { recipient, everyMs, keep, hook, hookTimeoutMs } = config.backup
  if (folder === null || recipient === null) return null
  return new BackupSchedule({
    backups,
    alarms: clusterNode.alarms,
    log,
    everyMs,
    keep,
    recipientPath: recipient,
    folder,
    hook: hook.length === 0 ? null : { command: hook, timeoutMs: hookTimeoutMs },
  })
}

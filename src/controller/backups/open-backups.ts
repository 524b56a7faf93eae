import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { ClusterActionRecorder } from '../../cluster/action-recorder.ts'
import type { Logger } from '../../cluster/logger.ts'
import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import type { BackupControl } from '../../api/backups/backup-control.ts'
import type { RestoreControl } from '../../api/backups/restore-control.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { RunningOptions } from '../running-options.ts'
import { BackupFolder } from './backup-folder.ts'
import { BackupSchedule } from './backup-schedule.ts'
import type { BackupDeps } from './start-backup.ts'
import { createBackupControl } from './backup-control.ts'
import { createRestoreControl } from './restore-control.ts'

/** The backups and restores of a controller, as one component. */
interface Backups {
  readonly control: BackupControl
  readonly restores: RestoreControl
  /**
   * Time of this controller's newest scheduled backup, UTC ms; 0 if there is no backup, null if
   * there is no schedule.
   */
  readonly lastTakenMs: () => number | null
  /** Starts the schedule, if one is configured. */
  start(): void
  close(): Promise<void>
}

export function openBackups(
  running: RunningOptions,
  clusterNode: ClusterNode,
  log: Logger,
  backups: BackupDeps & { readonly machine: Pick<StateMachine, 'onRecordsReplaced'> },
): Backups {
  const planned = new PlannedBackups(clusterNode.alarms, log, backups)
  planned.configure(running.config)
  running.onReload(async (config, before) => {
    if (canonicalJson(config.backup) === canonicalJson(before.backup)) return
    await planned.close()
    planned.configure(config)
    planned.start()
  })
  backups.machine.onRecordsReplaced = (index) => {
    log.warn({ index }, `replaced all records by those of a backup at index ${index}`)
  }
  const actions = new ClusterActionRecorder(clusterNode, log)
  return {
    control: createBackupControl({ ...backups, actions, folder: () => planned.folder }),
    restores: createRestoreControl({ ...backups, proposer: clusterNode }),
    lastTakenMs: () => planned.lastTakenMs,
    start: () => planned.start(),
    close: async () => await planned.close(),
  }
}

/**
 * The backup schedule of the current configuration; there is none if the configuration has none.
 */
class PlannedBackups {
  readonly #alarms: AlarmRaiser
  readonly #log: Logger
  readonly #backups: BackupDeps
  #folder: BackupFolder | null = null
  #schedule: BackupSchedule | null = null

  constructor(alarms: AlarmRaiser, log: Logger, backups: BackupDeps) {
    this.#alarms = alarms
    this.#log = log
    this.#backups = backups
  }

  get folder(): BackupFolder | null {
    return this.#folder
  }

  get lastTakenMs(): number | null {
    return this.#schedule?.lastTakenMs ?? null
  }

  /**
   * Replaces the schedule. Also clears the alarms of the former schedule, because no later attempt
   * of that schedule can clear them.
   */
  configure({ backup, id, log }: ControllerConfig): void {
    this.#alarms.clear('BACKUP_FAILED')
    this.#alarms.clear('BACKUP_HOOK_FAILED')
    const { folder: path, recipient, everyMs, keep, hook, hookTimeoutMs } = backup
    this.#folder = null
    this.#schedule = null
    if (path === null || recipient === null) return
    const freeBytesMin = log.lowSpaceBytes
    const folder = new BackupFolder({ folder: path, controllerId: id, freeBytesMin })
    this.#folder = folder
    this.#schedule = new BackupSchedule({
      backups: this.#backups,
      alarms: this.#alarms,
      log: this.#log,
      everyMs,
      keep,
      recipientPath: recipient,
      folder,
      hook: hook.length === 0 ? null : { command: hook, timeoutMs: hookTimeoutMs },
    })
  }

  start(): void {
    this.#schedule?.start()
  }

  async close(): Promise<void> {
    await this.#schedule?.close()
  }
}

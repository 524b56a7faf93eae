import { readFile } from 'node:fs/promises'

import { type BackupRecipient, parseRecipient } from '../../backup/encryption.ts'
import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { Logger } from '../../cluster/logger.ts'
import { Problem } from '../../lib/problems.ts'
import { toOperatorFailure } from '../command-failure.ts'
import { PeriodicTask } from '../periodic-task.ts'
import type { BackupFolder } from './backup-folder.ts'
import { type BackupHook, runBackupHook } from './backup-hook.ts'
import {
  type BackupDeps,
  streamBackupBytes,
  startBackup,
  type StartedBackup,
} from './start-backup.ts'
import { errorMessage, readFaultText } from '../../lib/error-code.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/** Interval for checking whether a backup is due. */
const LOOK_MS = 1000
/**
 * Maximum delay of a retry after a failure; if the interval of the schedule is shorter, the delay
 * is that interval.
 */
const RETRY_MS_MAX = 5 * 60_000

export interface BackupScheduleDeps {
  readonly backups: BackupDeps
  readonly folder: BackupFolder
  /**
   * Path of the recipient's key; read for each backup, so that the operator can replace the key
   * without a restart.
   */
  readonly recipientPath: string
  readonly everyMs: number
  readonly keep: number
  /** The operator's program to run after each backup; null: none is configured. */
  readonly hook: BackupHook | null
  readonly alarms: AlarmRaiser
  readonly log: Logger
}

/**
 * Creates backups on schedule, keeps the newest ones and runs the operator's hook for each. A
 * failed backup raises an alarm and is retried; a failed hook only raises an alarm.
 */
export class BackupSchedule {
  readonly #deps: BackupScheduleDeps
  readonly #task = new PeriodicTask(LOOK_MS, () => this.#look())
  /** Time of the next backup, UTC ms; null until the folder has been read. */
  #dueAtMs: number | null = null
  #lastTakenMs = 0

  constructor(deps: BackupScheduleDeps) {
    this.#deps = deps
  }

  /** Time of the newest backup, UTC ms; 0 if there is none. */
  get lastTakenMs(): number {
    return this.#lastTakenMs
  }

  start(): void {
    this.#task.start()
  }

  /** Aborts the backup in progress and its hook, and stops the schedule. */
  async close(): Promise<void> {
    await this.#task.close()
  }

  /** Creates a backup if one is due. Never rejects. */
  async look(): Promise<void> {
    await this.#task.look()
  }

  async #look(): Promise<void> {
    const { clock } = this.#deps.backups
    this.#dueAtMs ??= await this.#firstDueMs()
    // Without this limit, a clock that was set back would delay the next backup by the same time.
    const latestMs = clock.nowMs() + this.#deps.everyMs
    this.#dueAtMs = Math.min(this.#dueAtMs, latestMs)
    if (clock.nowMs() < this.#dueAtMs) return
    const isDone = await this.#run()
    const { everyMs } = this.#deps
    this.#dueAtMs = clock.nowMs() + (isDone ? everyMs : Math.min(everyMs, RETRY_MS_MAX))
  }

  /**
   * Time at which the first backup is due. A restart does not cause an early backup. If the folder
   * is unreadable, the failing backup reports that, not this function.
   */
  async #firstDueMs(): Promise<number> {
    const { folder, everyMs } = this.#deps
    const [newest] = await folder.list().catch(() => [])
    if (newest === undefined) return 0
    this.#lastTakenMs = newest.takenAtMs
    return newest.takenAtMs + everyMs
  }

  async #run(): Promise<boolean> {
    const { alarms, log, folder, keep } = this.#deps
    try {
      const path = await this.#take()
      alarms.clear('BACKUP_FAILED')
      await folder.keep(keep).catch((err: unknown) => {
        log.warn({ err }, 'cannot remove old backups; remove them by hand')
      })
      await this.#bringElsewhere(path)
      return true
    } catch (error) {
      if (this.#task.stop.aborted) return false
      alarms.raise('BACKUP_FAILED', { fault: this.#faultOf(error) })
      return false
    }
  }

  /**
   * Creates a backup.
   * @returns its path.
   */
  async #take(): Promise<string> {
    const { backups, folder, log } = this.#deps
    const recipient = await this.#recipient()
    const taken = await this.#takeLatest(recipient)
    const { index, takenAtMs } = taken.writer.manifest
    try {
      const path = await folder.write(
        { index, takenAtMs },
        this.#stoppable(streamBackupBytes(backups, taken)),
      )
      this.#lastTakenMs = takenAtMs
      const { bytes, sha256 } = taken.writer.written ?? {}
      log.info({ path, index, bytes, sha256 }, 'backup taken')
      return path
    } finally {
      // The snapshot is closed here, because if the folder is not writable, nothing reads the
      // snapshot; otherwise `streamBackupBytes` closes it at the end.
      await taken.close()
    }
  }

  /**
   * Creates a backup of the latest state. Without a leader, or if this controller does not reach
   * that state in time, backs up the state that this controller has applied, because backups are
   * needed most in such a failure.
   */
  async #takeLatest(recipient: BackupRecipient): Promise<StartedBackup> {
    const { backups, log } = this.#deps
    const options = { recipient, hasSecrets: true }
    try {
      return await startBackup(backups, { ...options, isLinearizable: true })
    } catch (error) {
      const code = error instanceof Problem ? error.code : null
      if (code !== 'CLUSTER_NO_LEADER' && code !== 'INDEX_NOT_REACHED') throw error
      log.warn({ code }, 'no leader; backing up the state applied here')
      return await startBackup(backups, { ...options, isLinearizable: false })
    }
  }

  /** The error message, with the folder and a remedy if the error comes from the file system. */
  #faultOf(error: unknown): string {
    const shown = toOperatorFailure(error)
    const isOfSystem = shown !== error && shown instanceof Error
    return isOfSystem ? `${this.#deps.folder.path}: ${shown.message}` : errorMessage(error)
  }

  async #recipient(): Promise<BackupRecipient> {
    const { recipientPath, backups } = this.#deps
    const subject = `backup.recipient: ${recipientPath}:`
    const remedy = 'install the public key there, or correct the option'
    const bytes = await readFile(recipientPath).catch((error: unknown) => {
      throw new Error(`${subject} ${readFaultText(error)}; ${remedy}`, { cause: error })
    })
    try {
      return parseRecipient(decodeText(bytes), backups.cluster.members())
    } catch (error) {
      throw new Error(`${subject} ${errorMessage(error)}`, { cause: error })
    }
  }

  async *#stoppable(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      this.#task.stop.throwIfAborted()
      yield chunk
      // The event loop can serve requests between two chunks.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async #bringElsewhere(path: string): Promise<void> {
    const { hook, alarms, log } = this.#deps
    if (hook === null) return
    const fault = await runBackupHook(hook, path, this.#task.stop)
    if (this.#task.stop.aborted) return
    if (fault === null) {
      alarms.clear('BACKUP_HOOK_FAILED')
      log.info({ path }, 'backup hook finished')
      return
    }
    alarms.raise('BACKUP_HOOK_FAILED', { fault, path, command: hook.command[0] ?? '' })
  }
}

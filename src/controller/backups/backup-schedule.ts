import { readFile } from 'node:fs/promises'

import { type BackupRecipient, parseRecipient } from '../../backup/encryption.ts'
import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { Logger } from '../../cluster/logger.ts'
import { Problem } from '../../lib/problems.ts'
import { operatorFailure } from '../failure.ts'
import { PeriodicTask } from '../periodic-task.ts'
import type { BackupFolder } from './backup-folder.ts'
import { type Hook, runHook } from './hook.ts'
import { type BackupParts, bytesOf, takeBackup, type TakenBackup } from './take-backup.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** How often it is looked at whether a backup is due. */
const LOOK_MS = 1000
/** After one that failed, or sooner where they are taken more often. */
const RETRY_MS_MAX = 5 * 60_000

export interface ScheduleParts {
  readonly backups: BackupParts
  readonly folder: BackupFolder
  /** Read for each backup, so that another key can be put there at any time. */
  readonly recipientPath: string
  readonly everyMs: number
  readonly keep: number
  /** null: there is none. */
  readonly hook: Hook | null
  readonly alarms: AlarmRaiser
  readonly log: Logger
}

/**
 * Takes backups by itself, keeps the newest and has each brought elsewhere. What fails raises an
 * alarm and is tried again.
 */
export class BackupSchedule {
  readonly #parts: ScheduleParts
  readonly #task = new PeriodicTask(LOOK_MS, () => this.#look())
  /** UTC ms; null: the folder has not been looked at yet. */
  #dueAtMs: number | null = null
  #lastTakenMs = 0

  constructor(parts: ScheduleParts) {
    this.#parts = parts
  }

  /** When the newest backup was taken, UTC ms; 0: there is none yet. */
  get lastTakenMs(): number {
    return this.#lastTakenMs
  }

  start(): void {
    this.#task.start()
  }

  /** Ends the one that is being taken, and its hook. */
  async close(): Promise<void> {
    await this.#task.close()
  }

  /** Takes a backup when one is due. Never rejects. */
  async look(): Promise<void> {
    await this.#task.look()
  }

  async #look(): Promise<void> {
    const { clock } = this.#parts.backups
    this.#dueAtMs ??= await this.#firstDueMs()
    // A clock that was set back would put off the next one by as much.
    const latestMs = clock.nowMs() + this.#parts.everyMs
    this.#dueAtMs = Math.min(this.#dueAtMs, latestMs)
    if (clock.nowMs() < this.#dueAtMs) return
    const isDone = await this.#run()
    const { everyMs } = this.#parts
    this.#dueAtMs = clock.nowMs() + (isDone ? everyMs : Math.min(everyMs, RETRY_MS_MAX))
  }

  /**
   * A restart takes none before its time; a folder that cannot be read is told of by the backup
   * itself.
   */
  async #firstDueMs(): Promise<number> {
    const { folder, everyMs } = this.#parts
    const [newest] = await folder.list().catch(() => [])
    if (newest === undefined) return 0
    this.#lastTakenMs = newest.takenAtMs
    return newest.takenAtMs + everyMs
  }

  async #run(): Promise<boolean> {
    const { alarms, log, folder, keep } = this.#parts
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

  /** @returns the path of the backup. */
  async #take(): Promise<string> {
    const { backups, folder, log } = this.#parts
    const recipient = await this.#recipient()
    const taken = await this.#takeLatest(recipient)
    const { index, takenAtMs } = taken.writer.manifest
    try {
      const path = await folder.write(
        { index, takenAtMs },
        this.#stoppable(bytesOf(backups, taken)),
      )
      this.#lastTakenMs = takenAtMs
      const { bytes, sha256 } = taken.writer.written ?? {}
      log.info({ path, index, bytes, sha256 }, 'backup taken')
      return path
    } finally {
      // The bytes were not asked for where the folder cannot be written.
      await taken.close()
    }
  }

  /** Without a leader, what this controller has applied: that is the time when it may be needed. */
  async #takeLatest(recipient: BackupRecipient): Promise<TakenBackup> {
    const { backups, log } = this.#parts
    const wish = { recipient, hasSecrets: true }
    try {
      return await takeBackup(backups, { ...wish, isLinearizable: true })
    } catch (error) {
      const code = error instanceof Problem ? error.code : null
      if (code !== 'CLUSTER_NO_LEADER' && code !== 'INDEX_NOT_REACHED') throw error
      log.warn({ code }, 'no leader; backing up the state applied here')
      return await takeBackup(backups, { ...wish, isLinearizable: false })
    }
  }

  /** The file system does not always name the folder, and never what to do. */
  #faultOf(error: unknown): string {
    const told = operatorFailure(error)
    const isOfSystem = told !== error && told instanceof Error
    return isOfSystem ? `${this.#parts.folder.path}: ${told.message}` : errorMessage(error)
  }

  async #recipient(): Promise<BackupRecipient> {
    return parseRecipient(await readFile(this.#parts.recipientPath, 'utf8'))
  }

  async *#stoppable(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      this.#task.stop.throwIfAborted()
      yield chunk
      // Requests come between two pieces.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async #bringElsewhere(path: string): Promise<void> {
    const { hook, alarms, log } = this.#parts
    if (hook === null) return
    const fault = await runHook(hook, path, this.#task.stop)
    if (this.#task.stop.aborted) return
    if (fault === null) {
      alarms.clear('BACKUP_HOOK_FAILED')
      log.info({ path }, 'backup hook finished')
      return
    }
    alarms.raise('BACKUP_HOOK_FAILED', { fault, path, command: hook.command[0] ?? '' })
  }
}

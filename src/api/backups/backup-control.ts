import type { Actor } from '../../ports/actor.ts'

/** Recipient and contents of a requested backup. */
export interface BackupRequest {
  /**
   * PEM public key or certificate of the recipient for whom the backup is encrypted; null: not
   * encrypted.
   */
  readonly recipientPem: string | null
  readonly hasSecrets: boolean
  /** True: the caller wants the secrets in the backup unencrypted. */
  readonly isPlaintext: boolean
  /** True: back up the state that this controller has applied, without a query to the leader. */
  readonly isStale: boolean
}

/** Scheduled backups that one controller has written. */
export interface ScheduledBackups {
  /**
   * False: the configuration sets no backup folder, so this controller makes no scheduled backups.
   */
  readonly isScheduled: boolean
  /** Backups in the folder, newest first. */
  readonly backups: readonly { readonly name: string; readonly takenAtMs: number }[]
}

/** Creates backups of the whole state on this controller. */
export interface BackupControl {
  /**
   * Streams the bytes of a backup as it is made; the stream fails if the backup cannot be
   * completed.
   * @throws {Problem} RATE_LIMITED while another backup is running, COULD_NOT_VALIDATE,
   * CLUSTER_NO_LEADER.
   */
  take(request: BackupRequest, by: Actor): Promise<AsyncIterable<Uint8Array>>
  list(): Promise<ScheduledBackups>
}

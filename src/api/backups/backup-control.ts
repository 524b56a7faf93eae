import type { Actor } from '../../ports/actor.ts'

/** Recipient and contents of a requested backup. */
export interface BackupRequest {
  /** PEM of a public key or certificate for which the backup is encrypted; null: not encrypted. */
  readonly recipientPem: string | null
  readonly hasSecrets: boolean
  /** True: the caller wants the secrets unencrypted. */
  readonly isPlaintext: boolean
  /** True: uses the state that this controller has applied, without asking the leader. */
  readonly isStale: boolean
}

/** Backups that one controller has written by its schedule. */
export interface ScheduledBackups {
  /** False: the configuration names no folder, so this controller makes no backups. */
  readonly isScheduled: boolean
  /** The newest first. */
  readonly backups: readonly { readonly name: string; readonly takenAtMs: number }[]
}

/** Backups of the whole state by this controller. */
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

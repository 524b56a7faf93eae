import type { Actor } from '../../ports/actor.ts'

export interface BackupRequest {
  /** PEM, a public key or certificate: the backup is encrypted for it; null: it is not. */
  readonly recipientPem: string | null
  readonly hasSecrets: boolean
  /** Secrets in the clear are meant. */
  readonly isPlaintext: boolean
  /** Without a word of the leader: what this controller has applied. */
  readonly isStale: boolean
}

/** Backups that one controller has written by its schedule. */
export interface ScheduledBackups {
  /** False: the configuration names no folder, and none are taken. */
  readonly isScheduled: boolean
  /** The newest first. */
  readonly backups: readonly { readonly name: string; readonly takenAtMs: number }[]
}

/** Backups of the whole state by this controller. */
export interface BackupControl {
  /**
   * The bytes of a backup, taken as they are read; they end with an error where it cannot be whole.
   * @throws {Problem} RATE_LIMITED while another one is taken, COULD_NOT_VALIDATE,
   * CLUSTER_NO_LEADER.
   */
  take(request: BackupRequest, by: Actor): Promise<AsyncIterable<Uint8Array>>
  list(): Promise<ScheduledBackups>
}

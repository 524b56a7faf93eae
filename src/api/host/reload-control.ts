import type { Actor } from '../../ports/actor.ts'

/** An option whose value in the file was another than the one in force. */
export interface ReloadedOption {
  readonly key: string
  /** Values for people, without secrets; null for a list of sections. */
  readonly from: string | null
  readonly to: string | null
  /** True: it is in force now. False: a restart takes it. */
  readonly isInForce: boolean
}

export interface ReloadResult {
  /** Path of the configuration. */
  readonly path: string
  readonly changed: readonly ReloadedOption[]
  /** Why certificate files were rejected, which leaves the present ones in use; null: none was. */
  readonly refusedCertificates: string | null
}

/** Reads the configuration of the running controller again. */
export interface ReloadControl {
  /**
   * Applies the options that need no restart, and rereads certificate, key and CA files.
   * @throws {Problem} CONFIGURATION_REFUSED when the file is invalid; then nothing changes.
   */
  reload(by: Actor): Promise<ReloadResult>
}

import type { Actor } from '../../ports/actor.ts'

/** An option whose value in the file differed from the value in force. */
export interface ReloadedOption {
  readonly key: string
  /** Values for display, without secrets; null for a list of sections. */
  readonly from: string | null
  readonly to: string | null
  /** True: the new value is in force now. False: it takes effect after a restart. */
  readonly isInForce: boolean
}

/** A file that an option names, and whose content differs from the content in force before. */
export interface ReloadedFile {
  /** The option, for example `identity.ca`. */
  readonly key: string
  readonly path: string
  /** True: the new content is in force now. */
  readonly isInForce: boolean
  /** True: the new content was rejected. If both are false, it takes effect after a restart. */
  readonly isRejected: boolean
}

export interface ReloadResult {
  /** Path of the configuration. */
  readonly path: string
  readonly changed: readonly ReloadedOption[]
  /** Releases before 0.3.0 do not send it. */
  readonly changedFiles?: readonly ReloadedFile[]
  /**
   * Why certificate files were rejected; the controller still uses the previous ones. null: none
   * was rejected.
   */
  readonly refusedCertificates: string | null
}

/** Reloads the configuration of the running controller. */
export interface ReloadControl {
  /**
   * Applies the options that can change without a restart, and rereads certificate, key and CA
   * files.
   * @throws {Problem} CONFIGURATION_REFUSED when the file is invalid; then nothing changes.
   */
  reload(by: Actor): Promise<ReloadResult>
}

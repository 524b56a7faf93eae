import type { Actor } from '../../ports/actor.ts'

/** An option whose value in the file differed from the value that the controller used. */
export interface OptionChange {
  readonly key: string
  /** Values for display, without secrets; null for a list of sections. */
  readonly from: string | null
  readonly to: string | null
  /**
   * True: the controller now uses the new value. False: the new value takes effect after a restart.
   */
  readonly isInForce: boolean
}

/**
 * A file that an option names, and whose content differed from the content that the controller
 * used.
 */
export interface ChangedFile {
  /** The option, for example `identity.ca`. */
  readonly key: string
  readonly path: string
  /** True: the controller now uses the new content. */
  readonly isInForce: boolean
  /**
   * True: the controller rejected the new content. If `isInForce` and `isRejected` are false, the
   * new content takes effect after a restart.
   */
  readonly isRejected: boolean
}

export interface ReloadResult {
  /** Path of the configuration file. */
  readonly path: string
  readonly changed: readonly OptionChange[]
  /** Absent in responses of releases before 0.3.0. */
  readonly changedFiles?: readonly ChangedFile[]
  /**
   * Reason why certificate files were rejected, so that the controller still uses the previous
   * files; null if no file was rejected.
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

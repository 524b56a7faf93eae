import { fileVersionKey } from '../../pki/verify/identity-files.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import { errorMessage } from '../../lib/error-code.ts'

interface CertificateFiles {
  readonly cert: string
  readonly key: string
  readonly ca?: string
}

/**
 * Watches the files of a certificate: decides when changed files must be read, and raises the alarm
 * CERTIFICATE_REFUSED if they are invalid.
 */
export class CertificateFileWatcher {
  readonly #paths: CertificateFiles
  readonly #alarms: AlarmRaiser
  /**
   * Stamp (times, sizes and inodes) of the files that were last accepted or rejected; '' before the
   * first time.
   */
  #judged = ''
  /** Stamp (times, sizes and inodes) of the files at the last check. */
  #seen: string
  #refusal: string | null = null

  constructor(paths: CertificateFiles, alarms: AlarmRaiser) {
    this.#paths = paths
    this.#alarms = alarms
    this.#seen = fileVersionKey(paths)
  }

  /** Reason why the files were rejected; null if they were not. */
  get refusal(): string | null {
    return this.#refusal
  }

  /** Whether the current files were already checked. */
  get areJudged(): boolean {
    return fileVersionKey(this.#paths) === this.#judged
  }

  /**
   * Whether changed files should be read. Called once per interval. Certificate and key are rarely
   * replaced at the same instant, so changed files are read after they have stayed unchanged for
   * one interval.
   */
  areDue(): boolean {
    const stamp = fileVersionKey(this.#paths)
    const isSettled = stamp === this.#seen
    this.#seen = stamp
    return isSettled && stamp !== this.#judged
  }

  /** Runs `step` on the current files. If it throws, the files count as rejected. */
  judge(step: () => void): void {
    this.#mark()
    try {
      step()
      this.#refuse(null)
    } catch (error) {
      this.#refuse(errorMessage(error))
      throw error
    }
  }

  /** Accepts the current files, because this controller has written them. */
  accept(): void {
    this.#mark()
    this.#refuse(null)
  }

  /** Clears the alarm, because the controller uses the files no more. */
  release(): void {
    this.#refuse(null)
  }

  #mark(): void {
    this.#judged = fileVersionKey(this.#paths)
    this.#seen = this.#judged
  }

  #refuse(sentence: string | null): void {
    const before = this.#refusal
    this.#refusal = sentence
    const path = this.#paths.cert
    if (sentence !== null) this.#alarms.raise('CERTIFICATE_REFUSED', { path, sentence })
    else if (before !== null) this.#alarms.clear('CERTIFICATE_REFUSED', path)
  }
}

import { fileStamp } from '../../pki/verify/identity-files.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import { errorMessage } from '../../lib/error-code.ts'

interface CertificateFiles {
  readonly cert: string
  readonly key: string
  readonly ca?: string
}

/**
 * The files of a certificate: when those that an operator exchanges are to be judged, and whether
 * they were refused, as the alarm CERTIFICATE_REFUSED shows it.
 */
export class WatchedFiles {
  readonly #paths: CertificateFiles
  readonly #alarms: AlarmRaiser
  /** Stamp of the files that were taken or refused last; '' as long as none were judged. */
  #judged = ''
  /** Stamp of the files at the last look. */
  #seen: string
  #refusal: string | null = null

  constructor(paths: CertificateFiles, alarms: AlarmRaiser) {
    this.#paths = paths
    this.#alarms = alarms
    this.#seen = fileStamp(paths)
  }

  /** Why they are refused; null: they are not. */
  get refusal(): string | null {
    return this.#refusal
  }

  /** Whether the files that lie there now are those that were judged last. */
  get areJudged(): boolean {
    return fileStamp(this.#paths) === this.#judged
  }

  /**
   * Asked once a look: certificate and key are seldom exchanged in one moment, so changed files are
   * due when they have stayed the same from one look to the next.
   */
  areDue(): boolean {
    const stamp = fileStamp(this.#paths)
    const isSettled = stamp === this.#seen
    this.#seen = stamp
    return isSettled && stamp !== this.#judged
  }

  /** Judges what lies there now: a step that throws refuses it. */
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

  /** Accepts what lies there, as this controller has written it. */
  accept(): void {
    this.#mark()
    this.#refuse(null)
  }

  #mark(): void {
    this.#judged = fileStamp(this.#paths)
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

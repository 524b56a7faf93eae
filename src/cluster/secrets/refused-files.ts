import type { AlarmRaiser } from '../../ports/alarms.ts'

/** Whether the files of a certificate are refused, as the alarm CERTIFICATE_REFUSED shows it. */
export class RefusedFiles {
  readonly #alarms: AlarmRaiser
  readonly #path: string
  #sentence: string | null = null

  /** @param path of the certificate, by which its alarm is known. */
  constructor(alarms: AlarmRaiser, path: string) {
    this.#alarms = alarms
    this.#path = path
  }

  /** Why they are refused; null: they are not. */
  get sentence(): string | null {
    return this.#sentence
  }

  set(sentence: string | null): void {
    const before = this.#sentence
    this.#sentence = sentence
    if (sentence !== null) this.#alarms.raise('CERTIFICATE_REFUSED', { path: this.#path, sentence })
    else if (before !== null) this.#alarms.clear('CERTIFICATE_REFUSED', this.#path)
  }
}

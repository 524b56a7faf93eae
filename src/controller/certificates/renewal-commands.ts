import type { Logger } from 'pino'

import type { Clock } from '../../lib/clock.ts'
import type { AlarmRaiser } from '../../ports/alarms.ts'
import { sentenceOf } from '../failure.ts'
import { PeriodicTask } from '../periodic-task.ts'
import { runProgram } from '../run-program.ts'

/** How often it is looked at whether one is due. */
const LOOK_MS = 5_000
/**
 * After one that failed, and twice as long after each further one. An authority of ACME refuses
 * those who ask too often.
 */
const RETRY_MS_MIN = 5 * 60_000
const RETRY_MS_MAX = 6 * 60 * 60_000
/** After a start: one that ends again and again would ask an authority as often. */
const START_MS = 30_000
const UNCHANGED = 'its command ended with code 0 and left the certificate as it was'
const UNCHANGED_MAX = 3
/** Of what the program wrote to stderr, for the log. */
const ERROR_BYTES_MAX = 1024

/** A certificate that a program of the operator renews. */
export interface RenewedByCommand {
  readonly cert: string
  readonly key: string
  readonly command: readonly string[]
  /** UTC ms. */
  readonly renewAtMs: () => number
  /** SHA-256 of the leaf in force; null: there is none. */
  readonly inForce: () => string | null
  /** Reads the files again and judges them. @throws why they are not taken. */
  readonly reload: () => Promise<void>
}

export interface RenewalCommandsParts {
  readonly certificates: readonly RenewedByCommand[]
  readonly timeoutMs: number
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly alarms: AlarmRaiser
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
}

interface Attempts {
  failed: number
  /** Monotonic. */
  nextAtMs: number
}

/**
 * Has certificates renewed by the programs that the configuration names, in time, one after the
 * other. What a program writes is judged as files that an operator has put there; what it prints is
 * for the log alone.
 */
export class RenewalCommands {
  readonly #parts: RenewalCommandsParts
  readonly #task = new PeriodicTask(LOOK_MS, () => this.#look())
  readonly #attempts = new Map<RenewedByCommand, Attempts>()

  constructor(parts: RenewalCommandsParts) {
    this.#parts = parts
    const nextAtMs = parts.clock.monotonicMs() + START_MS
    for (const one of parts.certificates) {
      if (one.command.length > 0) this.#attempts.set(one, { failed: 0, nextAtMs })
    }
  }

  start(): void {
    if (this.#attempts.size > 0) this.#task.start()
  }

  /** Ends the program that runs. */
  async close(): Promise<void> {
    await this.#task.close()
  }

  /** Runs what is due. Never rejects. */
  async look(): Promise<void> {
    await this.#task.look()
  }

  async #look(): Promise<void> {
    const { clock } = this.#parts
    for (const [one, attempts] of this.#attempts) {
      if (this.#task.stop.aborted) return
      if (clock.nowMs() < one.renewAtMs()) {
        // Somebody may have renewed it by hand.
        if (attempts.failed > 0) this.#succeed(one, attempts)
      } else if (clock.monotonicMs() >= attempts.nextAtMs) {
        await this.#renew(one, attempts)
      }
    }
  }

  async #renew(one: RenewedByCommand, attempts: Attempts): Promise<void> {
    const { timeoutMs, log, environment } = this.#parts
    const { cert, key, command } = one
    const before = one.inForce()
    const [program] = command
    log.info({ cert, program }, 'renewing a certificate by its command')
    const { fault, errors } = await runProgram(
      { command, timeoutMs },
      {
        words: [cert, key],
        stop: this.#task.stop,
        env: cleaned(environment),
        errorBytesMax: ERROR_BYTES_MAX,
      },
    )
    if (this.#task.stop.aborted) return
    const found = fault === null ? await judged(one, before) : `its command ${fault}`
    if (found === null) this.#succeed(one, attempts)
    else this.#fail(one, attempts, found, printable(errors))
  }

  #succeed(one: RenewedByCommand, attempts: Attempts): void {
    const { clock, alarms, log } = this.#parts
    attempts.failed = 0
    attempts.nextAtMs = clock.monotonicMs() + RETRY_MS_MIN
    alarms.clear('CERTIFICATE_RENEWAL_FAILED', one.cert)
    log.info({ cert: one.cert }, 'certificate renewed')
  }

  #fail(one: RenewedByCommand, attempts: Attempts, fault: string, errors: string): void {
    const { clock, alarms, log } = this.#parts
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempts.failed, 16))
    attempts.failed += 1
    attempts.nextAtMs = clock.monotonicMs() + waitMs
    const minutes = Math.round(waitMs / 60_000)
    const fields = errors === '' ? { cert: one.cert } : { cert: one.cert, stderr: errors }
    log.error(fields, `certificate not renewed: ${fault}; next attempt in ${minutes} minutes`)
    // A program may think that it is not time yet, and be right a little later.
    if (fault === UNCHANGED && attempts.failed < UNCHANGED_MAX) return
    alarms.raise('CERTIFICATE_RENEWAL_FAILED', { cert: one.cert, fault })
  }
}

/** @returns null when another certificate is in force than before. */
async function judged(one: RenewedByCommand, before: string | null): Promise<string | null> {
  try {
    await one.reload()
  } catch (error) {
    return `its command left files that were rejected: ${sentenceOf(error)}`
  }
  const isSame = one.inForce() === before
  return isSame ? UNCHANGED : null
}

/**
 * Programs need little, and nothing that this one was given for itself: options in its environment
 * may hold secrets.
 */
function cleaned(environment: RenewalCommandsParts['environment']): Record<string, string> {
  const { PATH = '/usr/local/bin:/usr/bin:/bin', HOME, USER, LOGNAME, LANG, TZ } = environment
  const kept = Object.entries({ PATH, HOME, USER, LOGNAME, LANG, TZ })
  return Object.fromEntries(kept.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** On one line, and without any key that a program may print. */
function printable(text: string): string {
  return (
    text
      .replaceAll(/-----BEGIN[\s\S]*?(?:-----END[^-]*-----|$)/g, '(PEM)')
      // Of a key whose beginning was cut off.
      .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '(…)')
      .replaceAll(/[^\x20-\x7e…]+/g, ' ')
      .trim()
  )
}

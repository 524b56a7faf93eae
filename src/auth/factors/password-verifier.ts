import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { FairQueue } from '../../lib/bounds/fair-queue.ts'
import { Problem } from '../../lib/problems.ts'

/** Parameters of Argon2id as OWASP recommends them for interactive log-ins: 19 MiB, 2 passes. */
const PARAMETERS = {
  type: argon2.argon2id,
  memoryCost: 19_456,
  timeCost: 2,
  parallelism: 1,
  hashLength: 32,
} as const
const SALT_BYTES = 16

/**
 * @returns a PHC string. It contains parameters and salt, so the parameters can be raised later.
 */
export function hashPassword(password: string): Promise<string> {
  return argon2.hash(password, { ...PARAMETERS, salt: randomBytes(SALT_BYTES) })
}

/** The caller for whom a hash is computed. */
export interface HashCaller {
  /**
   * Name for sharing queues and time: an identity, or the source address of an unauthenticated
   * caller.
   */
  readonly sharer: string
  /** True: the caller no longer waits for the answer. */
  readonly isGone: boolean
}

interface Turn {
  readonly by: HashCaller
  begin(): void
  drop(): void
}

/**
 * Limits concurrent password hashes. A hash occupies a thread of libuv's pool for tens of
 * milliseconds and 19 MiB, so excess log-ins wait or are refused. Each caller has its own queue and
 * the queues take turns, so that one source delays only itself.
 */
export class PasswordVerifier {
  readonly #atOnceMax: number
  readonly #waiting: FairQueue<Turn>
  #atWork = 0
  #decoy: Promise<string> | null = null

  constructor(options: { atOnceMax: number; waitingMax: number }) {
    this.#atOnceMax = options.atOnceMax
    this.#waiting = new FairQueue(options.waitingMax)
  }

  /**
   * @param known the stored hash; null if there is none. The verifier then does the same work and
   * answers false, so that the response time does not reveal which user names exist.
   * @param reserve called when this attempt leaves the queue, so that a refused attempt does not
   * count. If it returns false, the verifier does the same work and answers false.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when the queue is full; TIMEOUT when the caller left
   * before its turn: nothing was counted or computed.
   */
  async verify(
    by: HashCaller,
    known: string | null,
    password: string,
    reserve: () => Promise<boolean> = () => Promise.resolve(true),
  ): Promise<boolean> {
    await this.#enter(by)
    try {
      // @guard guesses-over-controllers--reservation
      const hash = known !== null && (await reserve()) ? known : null
      this.#decoy ??= hashPassword(randomBytes(SALT_BYTES).toString('hex'))
      const isMatch = await matches(hash ?? (await this.#decoy), password)
      return isMatch && hash !== null
    } finally {
      this.#leave()
    }
  }

  /** Hashes a new password, sharing the queue with verifications. @throws {Problem} as `verify`. */
  async hash(by: HashCaller, password: string): Promise<string> {
    await this.#enter(by)
    try {
      return await hashPassword(password)
    } finally {
      this.#leave()
    }
  }

  #enter(by: HashCaller): Promise<void> {
    if (this.#atWork < this.#atOnceMax) {
      this.#atWork += 1
      return Promise.resolve()
    }
    return new Promise((begin, reject) => {
      const turn = { by, begin, drop: () => reject(new Problem('TIMEOUT')) }
      // @guard log-ins-of-one-source
      if (this.#waiting.push(by.sharer, turn)) return
      const detail = 'too many queued log-ins; retry in 1 s'
      reject(new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1, detail }))
    })
  }

  /** Passes the slot directly to the next waiting caller, so that no later caller can take it. */
  #leave(): void {
    let next = this.#waiting.shift()
    // @guard log-ins-that-nobody-waits-for
    while (next?.by.isGone === true) {
      next.drop()
      next = this.#waiting.shift()
    }
    if (next === undefined) this.#atWork -= 1
    else next.begin()
  }
}

async function matches(hash: string, password: string): Promise<boolean> {
  try {
    return await argon2.verify(hash, password)
  } catch {
    // A stored value that is not a PHC string matches no password.
    return false
  }
}

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
 * Limits for the parameters of a stored hash. A password is not checked against a hash that exceeds
 * them: the hash may come from an untrusted backup.
 */
const ACCEPTED = { memoryKiBMax: PARAMETERS.memoryCost, passesMax: 4, lanesMax: 4 } as const
/**
 * Matches a PHC string of Argon2id with its parameters in any order; `hashCost` checks that each
 * parameter occurs.
 */
const PHC =
  /^\$argon2id\$v=19\$([mtp]=\d{1,6}),([mtp]=\d{1,6}),([mtp]=\d{1,6})\$[A-Za-z0-9+/]{11,172}\$[A-Za-z0-9+/]{43}$/

interface HashCost {
  readonly memoryKiB: number
  readonly passes: number
}

/**
 * Cost of checking a password against a stored hash; null if the hash is unreadable or exceeds the
 * limits, so that no password matches it.
 */
function hashCost(hash: string): HashCost | null {
  const [, ...parameters] = PHC.exec(hash) ?? []
  const values = new Map(parameters.map((text) => [text.slice(0, 1), Number(text.slice(2))]))
  const [memoryKiB, passes, lanes] = ['m', 't', 'p'].map((name) => values.get(name))
  if (memoryKiB === undefined || passes === undefined || lanes === undefined) return null
  const { memoryKiBMax, passesMax, lanesMax } = ACCEPTED
  // @guard hashes-of-a-migrated-network--bounds
  const isAccepted = memoryKiB <= memoryKiBMax && passes <= passesMax && lanes <= lanesMax
  return isAccepted ? { memoryKiB, passes } : null
}

/** Whether a hash is cheaper to guess than the hashes of new passwords. */
export function isWeakPasswordHash(hash: string): boolean {
  const cost = hashCost(hash)
  if (cost === null) return false
  return cost.memoryKiB < PARAMETERS.memoryCost || cost.passes < PARAMETERS.timeCost
}

/**
 * @returns a PHC string, which contains parameters and salt, so that a later release can raise the
 * parameters.
 */
export function hashPassword(password: string): Promise<string> {
  return argon2.hash(password, { ...PARAMETERS, salt: randomBytes(SALT_BYTES) })
}

/** The caller for whom a hash is computed. */
export interface PasswordHashCaller {
  /**
   * Key for fair sharing of queue places and time: an identity, or the source (an IPv4 address, a
   * /64 of IPv6) of an unauthenticated caller.
   */
  readonly sharer: string
  /** True when the caller no longer waits for the response. */
  readonly isGone: boolean
}

interface Turn {
  readonly by: PasswordHashCaller
  begin(): void
  drop(): void
}

/**
 * Limits concurrent password hashes. A hash occupies a thread of libuv's pool for tens of
 * milliseconds and 19 MiB, so excess log-ins wait or are refused. Each `sharer` has its own queue
 * and the queues take turns, so that many attempts from one source do not hold up the others.
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
   * returns false, so that the response time does not reveal which user names exist.
   * @param reserve called if there is a stored hash, when this attempt leaves the queue, so that an
   * attempt that the queue refuses does not count. If it returns false, the verifier still does the
   * same work, and returns false.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when the queue is full; TIMEOUT when the caller
   * stopped waiting while its attempt was queued: then nothing was counted or computed.
   */
  async verify(
    by: PasswordHashCaller,
    known: string | null,
    password: string,
    reserve: () => Promise<boolean> = () => Promise.resolve(true),
  ): Promise<boolean> {
    await this.#enter(by)
    try {
      // @guard guesses-over-controllers--reservation
      const hash = known !== null && (await reserve()) ? known : null
      this.#decoy ??= hashPassword(randomBytes(SALT_BYTES).toString('hex'))
      const decoy = await this.#decoy
      if (hash === null || hashCost(hash) === null) {
        await matches(decoy, password)
        return false
      }
      if (await matches(hash, password)) return true
      // @guard hashes-of-a-migrated-network--time
      if (isWeakPasswordHash(hash)) await matches(decoy, password)
      return false
    } finally {
      this.#leave()
    }
  }

  /**
   * Hashes a new password, in the same queue as verifications.
   * @throws {Problem} in the same cases as `verify`.
   */
  async hash(by: PasswordHashCaller, password: string): Promise<string> {
    await this.#enter(by)
    try {
      return await hashPassword(password)
    } finally {
      this.#leave()
    }
  }

  #enter(by: PasswordHashCaller): Promise<void> {
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

  /**
   * Frees a slot: passes it directly to the next waiting caller, so that a caller that arrives
   * later cannot overtake.
   */
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

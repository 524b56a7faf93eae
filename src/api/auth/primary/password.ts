import type { Authenticator } from '../../../entities/kinds/authenticator.ts'
import type { Identity } from '../../../entities/kinds/identity.ts'
import { authPolicyOf } from '../../../fsm/apply/authentication.ts'
import { isDisabled } from '../../../lib/is-disabled.ts'
import { Problem, fieldProblem } from '../../../lib/problems.ts'
import type { RequestContext } from '../../call.ts'
import type { Reply } from '../../answers/envelope.ts'
import type { ApiParts } from '../../parts.ts'
import type { ApiServices } from '../../records/services.ts'
import { judged } from '../../records/writes.ts'
import { type LogInBody, type Proof, SessionOpener } from '../open-session.ts'
import { judgedNowMs } from '../judged-now.ts'

export interface PasswordBody extends LogInBody {
  readonly password?: string
  readonly username?: string
}

/** Log-in by user name and password. */
export class PasswordLogIn {
  readonly #parts: ApiParts
  readonly #services: ApiServices
  readonly #opener: SessionOpener

  constructor(parts: ApiParts, services: ApiServices) {
    this.#parts = parts
    this.#services = services
    this.#opener = new SessionOpener(parts, services)
  }

  async logIn(call: RequestContext, given: PasswordBody): Promise<Reply> {
    const { username, password } = given
    if (username === undefined) throw fieldProblem('username', 'username is required')
    if (password === undefined) throw fieldProblem('password', 'password is required')
    this.#services.tokens.requireKey()
    return await judged(call, this.#parts.limits, async () => {
      const proof = await this.#services.throttle.attempt(
        username,
        call.credentials.address,
        async () => {
          // Without a leader there will be no session, so no hash is computed; with one, a password
          // set elsewhere a moment ago is known here too.
          await this.#parts.reads.reachLatest()
          return this.#prove(call, username, password)
        },
      )
      if (proof === null) throw new Problem('INVALID_AUTH')
      return this.#opener.open(call, proof, given)
    })
  }

  /**
   * Null for every reason to refuse, after the same work: an answer tells nothing about which names
   * exist.
   */
  async #prove(call: RequestContext, username: string, password: string): Promise<Proof | null> {
    const { state } = this.#parts
    const authenticator = state.find('authenticator', 'username', username) as
      | Authenticator
      | undefined
    const identityId = authenticator === undefined ? null : this.#holderOf(authenticator)
    if (authenticator === undefined || identityId === null) {
      await this.#services.passwords.verify(call, null, password)
      return null
    }
    const isRight = await this.#services.passwords.verify(
      call,
      authenticator.passwordHash,
      password,
      () => this.#services.lockout.reserve(authenticator, call.credentials.address),
    )
    return isRight ? { authenticator, identityId } : null
  }

  /** The identity that may log in by this password, or null. */
  #holderOf({ method, identityId }: Authenticator): string | null {
    const { state } = this.#parts
    if (method !== 'updb') return null
    const identity = state.get<Identity>('identity', identityId)
    if (identity === undefined || isDisabled(identity, judgedNowMs(this.#parts))) return null
    return authPolicyOf(state, identity)?.primary.updb.allowed === true ? identity.id : null
  }
}

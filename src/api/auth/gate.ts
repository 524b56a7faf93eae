import { Problem } from '../../lib/problems.ts'
import type { Call, Caller } from '../call.ts'
import { reachLatest } from '../consistency.ts'
import type { Permission } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import type { SessionFinding, SessionKeeper } from './session-keeper.ts'
import type { TokenSigner } from './token.ts'

/** Decides who calls, and whether that one may. */
export class Gate {
  readonly #parts: Pick<ApiParts, 'state' | 'cluster' | 'limits'>
  readonly #sessions: SessionKeeper
  readonly #tokens: TokenSigner

  constructor(
    parts: Pick<ApiParts, 'state' | 'cluster' | 'limits'>,
    sessions: SessionKeeper,
    tokens: TokenSigner,
  ) {
    this.#parts = parts
    this.#sessions = sessions
    this.#tokens = tokens
  }

  /**
   * Sets the caller of a call, or throws. A promise only where the cluster must be asked: a token that was signed here but
   * names a session this controller does not know may have been given by another one a moment ago.
   * @throws {Problem} UNAUTHORIZED, with the challenge set on the call; CLUSTER_NO_LEADER when nobody can tell.
   */
  admit(call: Call, token: string | undefined, permission: Permission): Promise<void> | null {
    if (token === undefined) return refuse(call, 'missing')
    const sessionId = this.#tokens.sessionIdOf(token)
    if (sessionId === null) return refuse(call, 'invalid')
    const found = this.#sessions.find(sessionId)
    if (found === 'unknown' || found === 'expired')
      return this.#confirm(call, sessionId, permission)
    this.#accept(call, found, permission)
    return null
  }

  /**
   * For a call that has waited for a later state: a session that ended in the meantime must not be shown what came after.
   * @throws {Problem} UNAUTHORIZED.
   */
  admitAgain(call: Call, permission: Permission): void {
    if (call.caller === null) return
    this.#accept(call, this.#sessions.find(call.caller.session.id), permission)
  }

  async #confirm(call: Call, sessionId: string, permission: Permission): Promise<void> {
    const { state, cluster, limits } = this.#parts
    await reachLatest(cluster, state, limits.indexWaitMs)
    this.#accept(call, this.#sessions.find(sessionId), permission)
  }

  #accept(call: Call, found: SessionFinding, permission: Permission): void {
    if (found === 'unknown' || found === 'refused') return refuse(call, 'invalid')
    if (found === 'expired') return refuse(call, 'expired')
    call.caller = found
    this.#sessions.use(found.session.id)
    if (!mayCall(found, permission)) throw new Problem('UNAUTHORIZED')
  }
}

function refuse(call: Call, challenge: NonNullable<Call['challenge']>): never {
  call.challenge = challenge
  throw new Problem('UNAUTHORIZED')
}

/** An administrator may do everything, everybody else what asks for a session only. */
function mayCall(caller: Caller, permission: Permission): boolean {
  return caller.isAdmin || permission === 'session' || permission === 'public'
}

const descriptions = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const

/** WWW-Authenticate: attributes are separated by one blank, as the clients of this API family read them. */
export function challengeText(challenge: NonNullable<Call['challenge']>): string {
  return `zt-session realm="zt-session" error="${challenge}" error_description="${descriptions[challenge]}"`
}

import { Problem } from '../../lib/problems.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { isShownBy, mayManage } from '../../fsm/apply/session-reach.ts'
import type { Caller, Challenge, RequestContext } from '../call.ts'
import type { Permission } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { mayCall } from './permissions.ts'
import { type TokenChallenge, tokenChallengeText } from './external-jwt/challenge.ts'
import { factorChallenge, type TokenFactor } from './external-jwt/token-factor.ts'
import type { VerifiedToken } from './external-jwt/token-judge.ts'
import type { SessionFinding, SessionTracker } from './session-tracker.ts'
import type { GoodToken, TokenSigner } from './token.ts'
import type { PeerChain } from '../transport/peer.ts'

/** What a request shows of its sender, and where it asks. */
type Asked = Pick<RequestContext, 'address' | 'peerChain' | 'bearers' | 'api' | 'method'>

/** How a request was judged. */
export type RequestAdmission =
  | { readonly isAdmitted: true; readonly caller: Caller }
  | {
      readonly isAdmitted: false
      /** Known, and not permitted; null: the session is not good. */
      readonly caller: Caller | null
      readonly challenge: Challenge | TokenChallenge | null
    }

type GateParts = Pick<ApiParts, 'state' | 'clock' | 'keys' | 'reads'>

/**
 * Requests that wait to learn of a key version unknown here; more are turned away, as anybody can
 * make one up.
 */
const UNKNOWN_VERSIONS_WAITING_MAX = 64

/** Decides who calls, and whether that one may. */
export class SessionGuard {
  readonly #parts: GateParts
  readonly #sessions: SessionTracker
  readonly #tokens: TokenSigner
  readonly #factor: TokenFactor
  /** By what a connection showed, which is one object each: the session it was good for. */
  readonly #proven = new WeakMap<PeerChain, string>()
  #waiting = 0

  constructor(
    parts: GateParts,
    sessions: SessionTracker,
    tokens: TokenSigner,
    factor: TokenFactor,
  ) {
    this.#parts = parts
    this.#sessions = sessions
    this.#tokens = tokens
    this.#factor = factor
  }

  /**
   * A promise only where the cluster must be asked: a token that was signed here but names a
   * session this controller does not know may have been given by another one a moment ago, and so
   * may one signed by a version of the key that is newer than those known here. So is the token of
   * an identity provider, which a session may ask for and which has to be verified.
   * @throws {Problem} CLUSTER_NO_LEADER when nobody can tell; SERVER_TOO_MANY_REQUESTS.
   */
  admit(
    asked: Asked,
    token: string | undefined,
    permission: Permission,
  ): RequestAdmission | Promise<RequestAdmission> {
    if (token === undefined) return refused('missing')
    const finding = this.#tokens.judge(token, this.#parts.clock.nowMs())
    if (finding === 'invalid') return refused('invalid')
    if (typeof finding === 'string') return this.#learnKey(asked, token, permission)
    const found = this.#sessions.find(finding.sessionId)
    if (found === 'unknown' || found === 'expired') return this.#confirm(asked, finding, permission)
    if (lacksCode(found, permission)) return this.#confirm(asked, finding, permission)
    return this.#accept(asked, found, finding, permission)
  }

  /**
   * For a request that has waited for a later state: a session that ended in the meantime, or a
   * token whose key did, must not be shown what came after.
   * @param caller as it was admitted before.
   */
  admitAgain(
    asked: Asked,
    caller: Caller,
    token: string,
    permission: Permission,
  ): RequestAdmission {
    const finding = this.#tokens.judge(token, this.#parts.clock.nowMs())
    if (typeof finding === 'string') return refused('invalid')
    const found = this.#sessions.find(finding.sessionId)
    return this.#seat(asked, found, finding, permission, caller.token ?? null)
  }

  /**
   * Of a request that is answered for as long as its session stands: why it may go on no longer, or
   * null. It counts as no use of the session.
   */
  endReason(
    asked: Pick<Asked, 'address' | 'api' | 'method'>,
    caller: Caller,
    permission: Permission,
  ): string | null {
    // The user of the host has no session that could end.
    if (caller.system !== undefined) return null
    try {
      const token = this.#tokens.tokenOf(caller.session.id, caller.keyVersion)
      const finding = this.#tokens.judge(token, this.#parts.clock.nowMs())
      if (typeof finding === 'string') return 'the session token is no longer accepted'
      if (finding.isOfOldKey && !isSameAddress(asked.address, caller.session['ipAddress'])) {
        return 'the session token is no longer accepted'
      }
      const found = this.#sessions.find(finding.sessionId)
      if (typeof found === 'string') return 'the session has ended'
      const now = this.#factor.completed(found, caller.token ?? null)
      return mayCall(now, permission, asked)
        ? null
        : 'the identity of the session is no longer permitted to see these events'
    } catch (error) {
      if (error instanceof Problem)
        return 'this controller cannot check whether the session is still valid'
      throw error
    }
  }

  async #confirm(
    asked: Asked,
    token: GoodToken,
    permission: Permission,
  ): Promise<RequestAdmission> {
    await this.#parts.reads.reachLatest()
    return await this.#accept(asked, this.#sessions.find(token.sessionId), token, permission)
  }

  /** The newest keys, then the judgement for good. */
  async #learnKey(asked: Asked, token: string, permission: Permission): Promise<RequestAdmission> {
    if (this.#waiting >= UNKNOWN_VERSIONS_WAITING_MAX) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
    }
    const { reads, keys, clock } = this.#parts
    this.#waiting += 1
    try {
      await reads.reachLatest()
      await keys.refresh()
    } finally {
      this.#waiting -= 1
    }
    const finding = this.#tokens.judge(token, clock.nowMs())
    if (finding === 'no-key') this.#tokens.requireKey()
    if (typeof finding === 'string') return refused('invalid')
    return await this.#accept(asked, this.#sessions.find(finding.sessionId), finding, permission)
  }

  #accept(
    asked: Asked,
    found: SessionFinding,
    token: GoodToken,
    permission: Permission,
  ): RequestAdmission | Promise<RequestAdmission> {
    const shown = typeof found === 'string' ? null : this.#factor.tokenFor(asked, found)
    if (!(shown instanceof Promise)) return this.#seat(asked, found, token, permission, shown)
    return shown.then((verified) => {
      // The session may have ended while the token was verified.
      const again = this.#sessions.find(token.sessionId)
      return this.#seat(asked, again, token, permission, verified)
    })
  }

  #seat(
    asked: Asked,
    found: SessionFinding,
    token: GoodToken,
    permission: Permission,
    shown: VerifiedToken | null,
  ): RequestAdmission {
    if (found === 'unknown' || found === 'refused') return refused('invalid')
    if (found === 'expired') return refused('expired')
    if (token.isOfOldKey && !isSameAddress(asked.address, found.session['ipAddress'])) {
      return refused('invalid')
    }
    if (!this.#isHonouredAt(asked, found.session as ApiSession)) return refused('invalid')
    const caller = { ...this.#factor.completed(found, shown), keyVersion: token.version }
    this.#sessions.use(found.session.id)
    if (mayCall(caller, permission, asked)) return { isAdmitted: true, caller }
    const challenge = factorChallenge(this.#parts, asked, caller)
    return { isAdmitted: false, caller, challenge }
  }

  /**
   * Routers hold the tokens of their clients: a session of the client API is good there alone, and
   * for the client that holds the certificate by which it was opened.
   */
  #isHonouredAt(asked: Asked, session: ApiSession): boolean {
    const { state } = this.#parts
    if (asked.api !== 'client') return mayManage(state, session)
    const chain = asked.peerChain()
    // A client whose certificate was extended goes on over the connections that it has.
    if (chain !== null && this.#proven.get(chain) === session.id) return true
    const isShown = isShownBy(state, session, chain?.[0].sha1 ?? null)
    if (isShown && chain !== null) this.#proven.set(chain, session.id)
    return isShown
  }
}

/** A code may have been given on another controller a moment ago. */
function lacksCode(found: SessionFinding, permission: Permission): boolean {
  if (typeof found === 'string' || permission === 'partial' || permission === 'public') return false
  return found.pendingFactors.some(({ kind }) => kind === 'totp')
}

const MAPPED_IPV4 = '::ffff:'

/** A listener on both families shows an IPv4 peer as a mapped IPv6 address. */
function isSameAddress(address: string, recorded: unknown): boolean {
  if (typeof recorded !== 'string' || recorded === '' || address === '') return false
  return plainAddress(address) === plainAddress(recorded)
}

function plainAddress(address: string): string {
  return address.startsWith(MAPPED_IPV4) ? address.slice(MAPPED_IPV4.length) : address
}

function refused(challenge: Challenge): RequestAdmission {
  return { isAdmitted: false, caller: null, challenge }
}

const descriptions = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const

/**
 * WWW-Authenticate: attributes are separated by one blank, as the clients of this API family read
 * them.
 */
export function challengeText(challenge: NonNullable<RequestContext['challenge']>): string {
  if (typeof challenge !== 'string') return tokenChallengeText(challenge)
  return `zt-session realm="zt-session" error="${challenge}" error_description="${descriptions[challenge]}"`
}

import { randomUUID } from 'node:crypto'

import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import {
  lacksSessionFactor,
  type PendingFactor,
  pendingFactors,
} from '../../fsm/apply/authentication.ts'
import { isKeyBound } from '../../fsm/apply/session-usability.ts'
import { sessionValidity } from '../../fsm/apply/session-validity.ts'
import type { Clock } from '../../lib/clock.ts'
import type { WriteRequest } from '../../ports/writer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type {
  LogInClientInfo,
  LogInCredential,
  LogInRequest,
  LogInService,
} from '../log-in/log-in.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { SessionPrincipal } from '../principal/principal.ts'
import { missingFactorChallenge, type ExternalJwtFactor } from '../principal/external-jwt-factor.ts'
import type { SessionTracker } from '../sessions/session-tracker.ts'
import type { RefreshTokenReuse } from '../sessions/refresh-token-reuse.ts'
import { invalidGrantError, OAuthError } from './oauth-error.ts'
import { type FlowSessions, redeemedCodeHash, flowSessionFields } from './flow-sessions.ts'
import type { OidcTokens } from '../sessions/oidc-tokens.ts'
import type { OidcToken } from '../../pki/oidc-token.ts'
import { type AuthorizationRequest, matchesCodeChallenge } from './public-clients.ts'
import {
  LOG_IN_FLOW_TIMEOUT_MS,
  type StartedLogInFlow,
  type StoredCredentialProof,
  toStoredCredentialProof,
  type AuthorizationCodeResponse,
  type FlowTokens,
  type LogInStepResult,
  type TokenSession,
} from './flow-steps.ts'
import type { FlowStateEncryption } from './flow-state-encryption.ts'
import type { TokenKeyBinding } from './token-key-binding.ts'

const PROGRESS_MS = 60_000
const CODE_MS = 60_000
/** Minimum lifetime of tokens, because their expiry has whole seconds. */
const TOKEN_MS_MIN = 1000
/** Maximum number of sessions for which a controller remembers an external JWT of the log-in. */
const TOKENS_GIVEN_MAX = 10_000

interface LogInFlowDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly flowSessions: FlowSessions
  readonly logIns: LogInService
  readonly tokenFactor: ExternalJwtFactor
  readonly sessions: SessionTracker
  readonly refreshUses: RefreshTokenReuse
  readonly seals: FlowStateEncryption
  readonly oidcTokens: OidcTokens
  readonly keyBinding: TokenKeyBinding
}

/**
 * Authorization code flow (RFC 6749, 4.1; RFC 7636). Each step may reach another controller,
 * because the encrypted id that the client sends contains the progress. Without a second factor,
 * redeeming the code creates the session in a single write. Otherwise the flow first creates a
 * session without permissions, in which it records the second factor.
 */
export class LogInFlow {
  readonly #deps: LogInFlowDeps
  /**
   * Sessions whose log-in request contained the required external JWT, with the time until which
   * this JWT counts as the second factor, monotonic ms.
   */
  readonly #tokenCountsUntil = new Map<string, number>()

  constructor(deps: LogInFlowDeps) {
    this.#deps = deps
  }

  /** @returns the id of the flow. */
  begin(request: AuthorizationRequest, issuer: string): Promise<string> {
    const contents = { ...request, issuer, sessionId: randomUUID() }
    return this.#deps.seals.seal('request', contents, LOG_IN_FLOW_TIMEOUT_MS)
  }

  /** The redirect URI of a flow; null for an unknown id. */
  async redirectOf(id: string): Promise<string | null> {
    return (await this.#begun(id))?.redirectUri ?? null
  }

  /**
   * Whether the flow of a device has a session of another identity, or one whose code was redeemed.
   * Everyone who knows a user code also knows the id of its flow, and must neither join nor end the
   * log-in of another identity.
   */
  #isOfOther(flow: StartedLogInFlow, { id }: Identity): boolean {
    const begun = this.#deps.flowSessions.get(flow)
    return begun !== undefined && (begun.codeHash !== '' || begun.identityId !== id)
  }

  /** Primary authentication. The id must be one that `begin` returned, here or in `DeviceFlow`. */
  async logIn(
    id: string,
    credential: LogInCredential,
    shown: CallerCredentials,
    client: Omit<LogInClientInfo, 'api' | 'oidc'> & { readonly certificateRequest?: string },
    request: LogInRequest,
  ): Promise<LogInStepResult> {
    const { certificateRequest: asked = '', ...about } = client
    const flow = await this.#begun(id)
    if (flow === null) return refused
    // Issues no certificate for a device log-in, because the key is in the user's browser, and the
    // device, which receives the tokens, does not have it.
    const certificateRequest = flow.isOfDevice === true ? '' : asked
    // Refuses to log in a device by certificate: its tokens would be valid only with the
    // certificate's key, which the device does not have.
    if (flow.isOfDevice === true && credential.by === 'cert') return refused
    const { logIns, state, flowSessions } = this.#deps
    const proof = await logIns.prove(credential, shown, request.turn)
    if ('code' in proof) return { kind: 'refused', refusal: proof }
    const identity = state.get('identity', proof.identityId)
    if (identity === undefined) return refused
    // @guard device-codes--other
    if (flow.isOfDevice === true && this.#isOfOther(flow, identity)) return refused
    const named = { ...about, configTypes: [...flow.configTypes, ...(about.configTypes ?? [])] }
    const begun = state.get('apiSession', flow.sessionId)
    // Second factors that were submitted under a flow id count only for the identity that submitted
    // these factors.
    // @guard oidc/code-flow--identity
    if (begun !== undefined && begun.identityId !== identity.id) {
      await flowSessions.end(begun.id)
      return refused
    }
    const required = pendingFactors(state, identity, begun ?? { isMfaComplete: false })
    const pending = await this.#lacking(flow, identity, required, shown)
    if (pending.length === 0 && begun === undefined) {
      return await this.#passed(flow, toStoredCredentialProof(proof, named, certificateRequest))
    }
    if (begun === undefined) {
      const oidc = { ...flowSessionFields(flow), codeHash: '', isBegun: false, certificateRequest }
      await logIns.open(proof, shown, { ...named, api: null, oidc }, request.write)
    }
    return pending.length > 0
      ? this.#pending(identity, pending, shown)
      : await this.#passed(flow, null)
  }

  /**
   * The principal that submits second factors of a flow; null for an unknown id, while the flow has
   * no valid session, and after its code was redeemed.
   */
  async sessionOf(id: string, shown: CallerCredentials): Promise<SessionPrincipal | null> {
    const flow = await this.#begun(id)
    if (flow === null) return null
    await this.#deps.reads.reachLatest()
    const session = this.#deps.state.get('apiSession', flow.sessionId)
    if (session === undefined || session.codeHash !== '') return null
    const found = this.#deps.sessions.find(session.id)
    if (typeof found === 'string') return null
    return { ...found, kind: 'session', address: shown.address, permission: 'partial' }
  }

  /**
   * Returns the next step after the client submitted a factor; the records show whether another
   * factor is missing.
   */
  async afterFactor(id: string, shown: CallerCredentials): Promise<LogInStepResult> {
    const flow = await this.#begun(id)
    const standing =
      flow === null ? null : sessionValidity(this.#deps.state.recordsNow, flow.sessionId)
    if (flow === null || standing === null) return refused
    const { identity, pendingFactors: required } = standing
    const factors = await this.#lacking(flow, identity, required, shown)
    return factors.length > 0
      ? this.#pending(identity, factors, shown)
      : await this.#passed(flow, null)
  }

  /**
   * The missing factors, without the external JWT if this request contained it, or an earlier
   * request of the flow to this controller.
   */
  async #lacking(
    { sessionId }: StartedLogInFlow,
    identity: Identity,
    required: readonly PendingFactor[],
    shown: CallerCredentials,
  ): Promise<readonly PendingFactor[]> {
    const { tokenFactor, clock } = this.#deps
    if (required.every(({ kind }) => kind !== 'extJwt')) return required
    const nowMs = clock.monotonicMs()
    const givenUntilMs = this.#tokenCountsUntil.get(sessionId) ?? 0
    const found = await tokenFactor.tokenFor(shown, { identity, pendingFactors: required })
    if (found === null && givenUntilMs <= nowMs) return required
    if (this.#tokenCountsUntil.size >= TOKENS_GIVEN_MAX) this.#tokenCountsUntil.clear()
    if (found !== null) this.#tokenCountsUntil.set(sessionId, nowMs + LOG_IN_FLOW_TIMEOUT_MS)
    return required.filter(({ kind }) => kind !== 'extJwt')
  }

  #pending(
    identity: Identity,
    factors: readonly PendingFactor[],
    shown: CallerCredentials,
  ): LogInStepResult {
    const challenge = missingFactorChallenge(this.#deps, shown, { pendingFactors: factors })
    return { kind: 'pending', factors, identityId: identity.id, challenge }
  }

  /**
   * Encrypts a completed log-in as its authorization code.
   * @returns null for an unknown or expired log-in, and for the log-in of a device.
   */
  async code(progressId: string): Promise<AuthorizationCodeResponse | null> {
    const { seals } = this.#deps
    const passed = await seals.open('progress', progressId)
    if (passed === null || passed.flow.isOfDevice === true) return null
    const { redirectUri, state, issuer } = passed.flow
    const code = await seals.seal('code', passed, CODE_MS)
    return { redirectUri, code, state, issuer }
  }

  /**
   * Exchanges a code for tokens, and creates or completes the session in one write.
   * @throws {OAuthError} invalid_request for an invalid certificate request; otherwise
   * invalid_grant. The second use of a code indicates theft and ends the session (RFC 6749, 4.1.2),
   * unless it can be the repetition of a request whose response was lost.
   */
  async redeem(
    code: string,
    given: { readonly clientId: string; readonly redirectUri: string; readonly verifier: string },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<FlowTokens> {
    const { seals, state, oidcTokens, keyBinding, flowSessions } = this.#deps
    const keyRevision = flowSessions.keyRevision()
    const passed = await seals.open('code', code)
    if (passed === null) throw invalidGrantError('the code is unknown, or its time is over')
    const { flow, proof } = passed
    const isOfClient = flow.clientId === given.clientId && flow.redirectUri === given.redirectUri
    // @guard oidc/code-flow--verifier
    if (!isOfClient || !matchesCodeChallenge(flow.challenge, given.verifier)) {
      throw invalidGrantError('client, redirect_uri or code_verifier is not that of the code')
    }
    const codeHash = redeemedCodeHash(code)
    await this.#deps.reads.reachLatest()
    const before = await flowSessions.redeemed(flow, codeHash)
    const begun = state.get('apiSession', flow.sessionId)
    const { identityId = '', certificateRequest = '' } = begun ?? proof ?? {}
    const ids = { identityId, apiSessionId: flow.sessionId }
    // Issues the certificate first, so that an invalid certificate request leaves no session that
    // its client cannot use.
    const made = await keyBinding.certify(ids, certificateRequest)
    const session =
      before ?? (await flowSessions.redeem(passed, { codeHash, keyRevision }, shown, request))
    if (made !== null) await keyBinding.keep(made, identityId, shown, request.write)
    const identity = state.get('identity', session.identityId)
    if (identity === undefined) throw invalidGrantError('the identity is gone')
    const { issuer, scopes, nonce } = flow
    const minted = await oidcTokens.mint({
      session,
      identity,
      issuer,
      scopes,
      nonce,
      generation: 1,
    })
    return { ...minted, sessionCertificate: made?.chainPem ?? null }
  }

  /**
   * Exchanges a refresh token or an access token for new tokens; tokens that the client gets for an
   * access token expire together with this access token. Apart from a certificate request, only the
   * first use of a session's tokens needs a write.
   * @param certificateRequest PEM of a request for another key, which replaces the key to which the
   * session is bound; '': none. Ignored if the session is not bound to a key.
   * @throws {OAuthError} invalid_grant; access_denied without the certificate of a bound session;
   * invalid_request for an invalid certificate request.
   */
  async renew(
    token: OidcToken,
    issuer: string,
    scopes: readonly string[],
    shown: CallerCredentials,
    certificateRequest: string,
    write: WriteRequest,
  ): Promise<FlowTokens> {
    const { sessions, refreshUses, oidcTokens, keyBinding, clock, flowSessions } = this.#deps
    // Routers see access tokens and must not be able to extend them: so the tokens that a client
    // gets for an access token expire together with it.
    // @guard oidc/refresh--exchanged
    const endsAtMsMax = token.generation === 0 ? token.expiresAtMs : Infinity
    if (endsAtMsMax - clock.nowMs() < TOKEN_MS_MIN) throw invalidGrantError('the token has expired')
    const { session, identity } = await this.holderOf(token, shown)
    const generation = token.generation + 1
    // If a token is bound to a certificate, a thief cannot use it without the key. Reuse of an
    // unbound token indicates that it was stolen.
    const isBound = isKeyBound(session)
    const isOpen = !isBound && token.generation > 0
    // @guard oidc/refresh--reused
    if (isOpen && refreshUses.isReused(session.id, token.generation)) {
      await flowSessions.end(session.id)
      throw invalidGrantError('the token was used before; its session has ended')
    }
    sessions.use(session.id)
    // @guard oidc/code-flow--renewed
    if (session.codeRedeemedAt !== null) await sessions.noteRenewal(session.id)
    const ids = { identityId: identity.id, apiSessionId: session.id }
    // @guard oidc/session-keys--mode
    const made = isBound ? await keyBinding.certify(ids, certificateRequest) : null
    if (made !== null) await keyBinding.keep(made, identity.id, shown, write)
    const minted = await oidcTokens.mint({
      session,
      identity,
      issuer,
      scopes,
      nonce: '',
      generation,
      endsAtMsMax,
    })
    return { ...minted, sessionCertificate: made?.chainPem ?? null }
  }

  /**
   * The session to which a token belongs; a session that lacks a second factor is refused.
   * @throws {OAuthError} invalid_grant; access_denied without the certificate of a bound session.
   */
  async holderOf(
    token: OidcToken,
    shown: CallerCredentials,
  ): Promise<{ readonly session: ApiSession; readonly identity: Identity }> {
    const { sessions, reads } = this.#deps
    let found = sessions.find(token.sessionId)
    if (typeof found === 'string') {
      await reads.reachLatest()
      found = sessions.find(token.sessionId)
    }
    if (typeof found === 'string') throw invalidGrantError('the session has ended or was revoked')
    const session = found.session
    if (session.identityId !== token.identityId || session.clientId !== token.clientId) {
      throw invalidGrantError('the token belongs to another session')
    }
    // @guard oidc/refresh--factor
    if (session.codeHash === '' || lacksSessionFactor(found.pendingFactors)) {
      throw invalidGrantError('a second factor is missing; log in again')
    }
    // @guard oidc/refresh--certificate
    if (!(await this.#isProven(session, shown))) {
      throw new OAuthError('access_denied', 'the client certificate of the session is required')
    }
    return { session, identity: found.identity }
  }

  /**
   * Whether the caller may use the session with the certificate of the connection. Waits for the
   * latest state if necessary, because another controller may have just issued the certificate.
   */
  async #isProven(session: ApiSession, shown: CallerCredentials): Promise<boolean> {
    const { logIns, reads } = this.#deps
    if (logIns.isProven(session, shown)) return true
    if (shown.peerChain() === null) return false
    await reads.reachLatest()
    return logIns.isProven(session, shown)
  }

  /** Ends the session to which a token of any kind belongs. */
  async endSessionOf({ sessionId, identityId, clientId }: TokenSession): Promise<void> {
    const { state, reads, flowSessions } = this.#deps
    if (state.get('apiSession', sessionId) === undefined) await reads.reachLatest()
    const session = state.get('apiSession', sessionId)
    // @guard oidc/tokens--session
    const isOfSession = session?.identityId === identityId && session.clientId === clientId
    if (isOfSession) await flowSessions.end(sessionId)
  }

  async #begun(id: string): Promise<StartedLogInFlow | null> {
    return await this.#deps.seals.open('request', id)
  }

  async #passed(
    flow: StartedLogInFlow,
    proof: StoredCredentialProof | null,
  ): Promise<LogInStepResult> {
    const passed = { flow, proof }
    const progressId = await this.#deps.seals.seal('progress', passed, PROGRESS_MS)
    return { kind: 'passed', issuer: flow.issuer, progressId }
  }
}

const refused: LogInStepResult = {
  kind: 'refused',
  refusal: { code: 'UNAUTHORIZED', challenge: null },
}

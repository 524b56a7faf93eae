import { createHash, randomUUID } from 'node:crypto'

import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, SessionDeleteSchema } from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import {
  lacksOwnFactor,
  type PendingFactor,
  pendingFactors,
} from '../../fsm/apply/authentication.ts'
import { isKeyBound } from '../../fsm/apply/session-reach.ts'
import { sessionValidity } from '../../fsm/apply/session-standing.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { type Clock, commonNowMs, proposalNowMs, majorityNowMs } from '../../lib/clock.ts'
import { Problem, type ProblemCode } from '../../lib/problems.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { WriteRequest } from '../../ports/writer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { LogInClientInfo, LogInCredential, LogInRequest, LogIns } from '../log-in/log-in.ts'
import type { CredentialProof } from '../log-in/proof.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { SessionPrincipal } from '../principal/principal.ts'
import { factorChallenge, type TokenFactor } from '../principal/token-factor.ts'
import type { SessionTracker } from '../sessions/session-tracker.ts'
import type { RefreshUses } from '../sessions/refresh-uses.ts'
import { OAuthError } from './oauth-error.ts'
import type { MintedTokens, OidcTokens } from '../sessions/oidc-tokens.ts'
import type { OidcToken } from '../../pki/oidc-token.ts'
import { type AuthorizationRequest, matchesChallenge } from './public-clients.ts'
import {
  type BegunFlow,
  type StoredProof,
  storedProof,
  type CodeAnswer,
  type DeviceFlow,
  type FlowTokens,
  type LogInStep,
  type PassedLogIn,
  type TokenSession,
} from './flow-steps.ts'
import type { SealedTexts } from './sealed-texts.ts'
import type { KeyBinding } from './key-binding.ts'

const REQUEST_MS = 10 * 60_000
const PROGRESS_MS = 60_000
const CODE_MS = 60_000
/** Tokens end at whole seconds. */
const TOKEN_MS_MIN = 1000
const TOKENS_GIVEN_MAX = 10_000
/**
 * A client that lost the answer may redeem its code again within this time of the first redemption,
 * until its tokens are used.
 */
const CODE_REPEATED_MS = 10_000
/** Path below the issuer: the last page for a user who approved the log-in of a device. */
export const DEVICE_DONE_PATH = '/device/done'

interface LogInFlowDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'quorumClockMs'>
  readonly reads: LatestReads
  readonly proposer: Proposer
  readonly logIns: LogIns
  readonly tokenFactor: TokenFactor
  readonly sessions: SessionTracker
  readonly refreshUses: RefreshUses
  readonly seals: SealedTexts
  readonly oidcTokens: OidcTokens
  readonly keyBinding: KeyBinding
}

/**
 * Authorization code flow (RFC 6749, 4.1; RFC 7636). Each step may reach another controller: the
 * sealed id that the client sends carries the progress. Without a second factor, redeeming the code
 * creates the session in a single write. Otherwise the flow first creates a session without rights,
 * which records the factor.
 */
export class LogInFlow {
  readonly #deps: LogInFlowDeps
  /** Flows whose request brought the token of a signer, by session, until when (monotonic ms). */
  readonly #tokenGivenUntil = new Map<string, number>()

  constructor(deps: LogInFlowDeps) {
    this.#deps = deps
  }

  /** @returns the id of the flow. */
  begin(request: AuthorizationRequest, issuer: string): Promise<string> {
    const contents = { ...request, issuer, sessionId: randomUUID() }
    return this.#deps.seals.seal('request', contents, REQUEST_MS)
  }

  /**
   * A flow for a device (RFC 8628), whose code leads to it.
   * @returns its id, for the person, and the secret of the device.
   */
  async beginForDevice(
    { clientId, scopes }: Pick<AuthorizationRequest, 'clientId' | 'scopes'>,
    issuer: string,
    userCode: string,
  ): Promise<{ readonly id: string; readonly deviceCode: string }> {
    const { seals } = this.#deps
    const flow: BegunFlow = {
      clientId,
      scopes,
      issuer,
      // No code is given for it: nothing is the verifier of this challenge.
      challenge: '',
      redirectUri: `${issuer}${DEVICE_DONE_PATH}`,
      state: '',
      nonce: '',
      configTypes: [],
      sessionId: randomUUID(),
      isOfDevice: true,
    }
    const endsAtMs = commonNowMs(this.#deps) + REQUEST_MS
    const ofDevice = { flow, userCode, endsAtMs }
    return {
      id: await seals.seal('request', flow, REQUEST_MS),
      // The code stays recognizable for a while after it expires, so that the device gets
      // `expired_token`.
      deviceCode: await seals.seal('device', ofDevice, 2 * REQUEST_MS),
    }
  }

  /** Null: no device has that code, or it ended long ago. */
  async ofDevice(deviceCode: string): Promise<DeviceFlow | null> {
    const keyRevision = this.#keyRevision()
    const found = await this.#deps.seals.open('device', deviceCode)
    if (found === null) return null
    const { flow, userCode, endsAtMs } = found
    const isOver = commonNowMs(this.#deps) >= endsAtMs
    const { clientId, sessionId } = flow
    return { flow, clientId, sessionId, userCode, isOver, keyRevision }
  }

  /** Whether somebody has begun to log in for the device, or has done so, under that id. */
  async isTaken(id: string): Promise<boolean> {
    const flow = await this.#begun(id)
    return flow === null || this.#deps.state.get('apiSession', flow.sessionId) !== undefined
  }

  /**
   * Lets the device of a flow have its session, which is made here unless a factor was given in it.
   * @returns where the person is sent; null: the flow is none of a device, or its time is over.
   * @throws {Problem} INVALID_AUTH, REVISION_MOVED where the credential was changed meanwhile.
   */
  async allow(
    progressId: string,
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<string | null> {
    const { seals, state, logIns } = this.#deps
    const keyRevision = this.#keyRevision()
    const passed = await seals.open('progress', progressId)
    if (passed?.flow.isOfDevice !== true) return null
    const { flow, proof } = passed
    const begun = state.get('apiSession', flow.sessionId)
    // Somebody else who has the user code was first.
    if (proof !== null && begun !== undefined && begun.identityId !== proof.identityId) {
      throw new Problem('INVALID_AUTH')
    }
    if (proof !== null && begun === undefined) {
      const full = this.#proofOf(proof)
      if (full === null) throw new Problem('INVALID_AUTH')
      const begins = { codeHash: '', isBegun: false, certificateRequest: '' }
      const oidc = { ...ofFlow(flow), ...begins, keyRevision }
      await logIns.open(full, shown, { ...proof.about, api: null, oidc }, request.write)
    }
    return flow.redirectUri
  }

  /**
   * Tokens for a device, once a person has let it have its session. It may ask any controller,
   * whose issuer the tokens then have.
   * @returns null: nobody has yet.
   * @throws {OAuthError} invalid_grant, and then the session is ended: the code was used twice.
   */
  async redeemForDevice(
    { flow, keyRevision }: DeviceFlow,
    { deviceCode, issuer }: { readonly deviceCode: string; readonly issuer: string },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<MintedTokens | null> {
    const { state, oidcTokens } = this.#deps
    const begun = state.get('apiSession', flow.sessionId)
    // A session that another controller has opened a moment ago is found at the next question.
    // @guard device-codes--factor
    if (begun === undefined || !this.#isWhole(begun)) return null
    const codeHash = createHash('sha256').update(deviceCode).digest('hex')
    await this.#deps.reads.reachLatest()
    const session =
      (await this.#redeemed(flow, codeHash)) ??
      (await this.#opened({ flow, proof: null }, { codeHash, keyRevision }, shown, request))
    const identity = state.get('identity', session.identityId)
    if (identity === undefined) throw invalidGrant('the identity is gone')
    const { scopes } = flow
    return await oidcTokens.mint({ session, identity, issuer, scopes, nonce: '', generation: 1 })
  }

  /**
   * The id of a device's flow is known to all who know its user code: by it they neither join the
   * log-in of another, nor end it.
   */
  #isOfOther({ sessionId }: BegunFlow, { id }: Identity): boolean {
    const begun = this.#deps.state.get('apiSession', sessionId)
    return begun !== undefined && (begun.codeHash !== '' || begun.identityId !== id)
  }

  #isWhole(session: ApiSession): boolean {
    const standing = sessionValidity(this.#deps.state.recordsNow, session.id)
    return standing !== null && !lacksOwnFactor(standing.pendingFactors)
  }

  /** The redirect URI of a flow; null: none was begun under that id. */
  async redirectOf(id: string): Promise<string | null> {
    return (await this.#begun(id))?.redirectUri ?? null
  }

  /** Primary authentication. The id must be one that `begin` gave. */
  async logIn(
    id: string,
    credential: LogInCredential,
    shown: CallerCredentials,
    client: Omit<LogInClientInfo, 'api' | 'oidc'> & { readonly certificateRequest?: string },
    request: LogInRequest,
  ): Promise<LogInStep> {
    const { certificateRequest: asked = '', ...about } = client
    const flow = await this.#begun(id)
    if (flow === null) return refused
    // The tokens are for a device, which has not the key of the person's browser.
    const certificateRequest = flow.isOfDevice === true ? '' : asked
    // Tokens of such a log-in count with the key of the certificate, which the device has not.
    if (flow.isOfDevice === true && credential.by === 'cert') return refused
    const { logIns, state } = this.#deps
    const proof = await logIns.prove(credential, shown, request.turn)
    if ('code' in proof) return { kind: 'refused', refusal: proof }
    const identity = state.get('identity', proof.identityId)
    if (identity === undefined) return refused
    // @guard device-codes--other
    if (flow.isOfDevice === true && this.#isOfOther(flow, identity)) return refused
    const named = { ...about, configTypes: [...flow.configTypes, ...(about.configTypes ?? [])] }
    const begun = state.get('apiSession', flow.sessionId)
    // Factors given under an id count for the identity that gave them.
    // @guard oidc/code-flow--identity
    if (begun !== undefined && begun.identityId !== identity.id) {
      await this.#end(begun.id)
      return refused
    }
    const required = pendingFactors(state, identity, begun ?? { isMfaComplete: false })
    const pending = await this.#lacking(flow, identity, required, shown)
    if (pending.length === 0 && begun === undefined) {
      return await this.#passed(flow, storedProof(proof, named, certificateRequest))
    }
    if (begun === undefined) {
      const oidc = { ...ofFlow(flow), codeHash: '', isBegun: false, certificateRequest }
      await logIns.open(proof, shown, { ...named, api: null, oidc }, request.write)
    }
    return pending.length > 0
      ? this.#pending(identity, pending, shown)
      : await this.#passed(flow, null)
  }

  /**
   * The session that factors of a flow are given in; null before primary authentication, and once
   * its code was redeemed.
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

  /** After a factor was given; the records say whether another is missing. */
  async afterFactor(id: string, shown: CallerCredentials): Promise<LogInStep> {
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
   * The factors that a flow still lacks. The token of a signer comes with the request; where a code
   * is given afterwards, its request need not bring the token once more.
   */
  async #lacking(
    { sessionId }: BegunFlow,
    identity: Identity,
    required: readonly PendingFactor[],
    shown: CallerCredentials,
  ): Promise<readonly PendingFactor[]> {
    const { tokenFactor, clock } = this.#deps
    if (required.every(({ kind }) => kind !== 'extJwt')) return required
    const nowMs = clock.monotonicMs()
    const givenUntilMs = this.#tokenGivenUntil.get(sessionId) ?? 0
    const found = await tokenFactor.tokenFor(shown, { identity, pendingFactors: required })
    if (found === null && givenUntilMs <= nowMs) return required
    if (this.#tokenGivenUntil.size >= TOKENS_GIVEN_MAX) this.#tokenGivenUntil.clear()
    if (found !== null) this.#tokenGivenUntil.set(sessionId, nowMs + REQUEST_MS)
    return required.filter(({ kind }) => kind !== 'extJwt')
  }

  #pending(
    identity: Identity,
    factors: readonly PendingFactor[],
    shown: CallerCredentials,
  ): LogInStep {
    const challenge = factorChallenge(this.#deps, shown, { pendingFactors: factors })
    return { kind: 'pending', factors, identityId: identity.id, challenge }
  }

  /** Seals what passed as the code. Null: no such flow, or its time is over. */
  async code(progressId: string): Promise<CodeAnswer | null> {
    const { seals } = this.#deps
    const passed = await seals.open('progress', progressId)
    if (passed === null || passed.flow.isOfDevice === true) return null
    const { redirectUri, state, issuer } = passed.flow
    const code = await seals.seal('code', passed, CODE_MS)
    return { redirectUri, code, state, issuer }
  }

  /**
   * Exchanges a code for tokens, and creates the session in one write.
   * @throws {OAuthError} invalid_grant. A code that is used twice was stolen: this also ends its
   * session (RFC 6749, 4.1.2).
   */
  async redeem(
    code: string,
    given: { readonly clientId: string; readonly redirectUri: string; readonly verifier: string },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<FlowTokens> {
    const { seals, state, oidcTokens, keyBinding } = this.#deps
    const keyRevision = this.#keyRevision()
    const passed = await seals.open('code', code)
    if (passed === null) throw invalidGrant('the code is unknown, or its time is over')
    const { flow, proof } = passed
    const isOfClient = flow.clientId === given.clientId && flow.redirectUri === given.redirectUri
    // @guard oidc/code-flow--verifier
    if (!isOfClient || !matchesChallenge(flow.challenge, given.verifier)) {
      throw invalidGrant('client, redirect_uri or code_verifier is not that of the code')
    }
    const codeHash = createHash('sha256').update(code).digest('hex')
    await this.#deps.reads.reachLatest()
    const before = await this.#redeemed(flow, codeHash)
    const begun = state.get('apiSession', flow.sessionId)
    const { identityId = '', certificateRequest = '' } = begun ?? proof ?? {}
    const ids = { identityId, apiSessionId: flow.sessionId }
    // The request is judged first: a bad one must not leave a session that its client cannot use.
    const made = await keyBinding.certify(ids, certificateRequest)
    const session =
      before ?? (await this.#opened(passed, { codeHash, keyRevision }, shown, request))
    if (made !== null) await keyBinding.keep(made, identityId, shown, request.write)
    const identity = state.get('identity', session.identityId)
    if (identity === undefined) throw invalidGrant('the identity is gone')
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
   * Tokens for a refresh token or an access token, from the record; without a write unless they are
   * the first tokens of the session that are used. Those for an access token end when it ends. A
   * holder that is bound to a key may ask for a certificate for another key, which replaces it.
   * @throws {OAuthError} invalid_grant; access_denied without the certificate that it is bound to.
   */
  async renew(
    token: OidcToken,
    issuer: string,
    scopes: readonly string[],
    shown: CallerCredentials,
    certificateRequest: string,
    write: WriteRequest,
  ): Promise<FlowTokens> {
    const { sessions, refreshUses, oidcTokens, keyBinding, clock } = this.#deps
    // Routers see access tokens, so an access token cannot be renewed: tokens exchanged for it
    // expire with it.
    // @guard oidc/refresh--exchanged
    const endsAtMsMax = token.generation === 0 ? token.expiresAtMs : Infinity
    if (endsAtMsMax - clock.nowMs() < TOKEN_MS_MIN) throw invalidGrant('the token has expired')
    const { session, identity } = await this.holderOf(token, shown)
    const generation = token.generation + 1
    // A certificate prevents others from using the token. Without one, reuse reveals a stolen
    // token.
    const isBound = isKeyBound(session)
    const isOpen = !isBound && token.generation > 0
    // @guard oidc/refresh--reused
    if (isOpen && refreshUses.isReused(session.id, token.generation)) {
      await this.#end(session.id)
      throw invalidGrant('the token was used before; its session has ended')
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
   * The full session of a token.
   * @throws {OAuthError} as `renew`.
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
    if (typeof found === 'string') throw invalidGrant('the session has ended or was revoked')
    const session = found.session
    if (session.identityId !== token.identityId || session.clientId !== token.clientId) {
      throw invalidGrant('the token belongs to another session')
    }
    // @guard oidc/refresh--factor
    if (session.codeHash === '' || lacksOwnFactor(found.pendingFactors)) {
      throw invalidGrant('a second factor is missing; log in again')
    }
    // @guard oidc/refresh--certificate
    if (!(await this.#isProven(session, shown))) {
      throw new OAuthError('access_denied', 'the client certificate of the session is required')
    }
    return { session, identity: found.identity }
  }

  /** A certificate of the session may have been made on another controller a moment ago. */
  async #isProven(session: ApiSession, shown: CallerCredentials): Promise<boolean> {
    const { logIns, reads } = this.#deps
    if (logIns.isProven(session, shown)) return true
    if (shown.peerChain() === null) return false
    await reads.reachLatest()
    return logIns.isProven(session, shown)
  }

  /** Ends the session of a token, for whichever of its tokens was shown. */
  async endSessionOf({ sessionId, identityId, clientId }: TokenSession): Promise<void> {
    const { state, reads } = this.#deps
    if (state.get('apiSession', sessionId) === undefined) await reads.reachLatest()
    const session = state.get('apiSession', sessionId)
    // @guard oidc/tokens--session
    const isOfSession = session?.identityId === identityId && session.clientId === clientId
    if (isOfSession) await this.#end(sessionId)
  }

  async #begun(id: string): Promise<BegunFlow | null> {
    return await this.#deps.seals.open('request', id)
  }

  async #passed(flow: BegunFlow, proof: StoredProof | null): Promise<LogInStep> {
    const passed = { flow, proof }
    const progressId = await this.#deps.seals.seal('progress', passed, PROGRESS_MS)
    return { kind: 'passed', issuer: flow.issuer, progressId }
  }

  /**
   * The session that this very code has made a moment ago; null: none is there, or it waits for it.
   * @throws {OAuthError} invalid_grant: the code was redeemed earlier, or its tokens were used.
   */
  async #redeemed(flow: BegunFlow, codeHash: string): Promise<ApiSession | null> {
    const session = this.#deps.state.get('apiSession', flow.sessionId)
    if (session === undefined || session.codeHash === '') return null
    const nowMs = majorityNowMs(this.#deps) ?? proposalNowMs(this.#deps)
    const ageMs = nowMs - (session.codeRedeemedAt ?? 0)
    // @guard oidc/code-flow--late
    if (session.codeHash === codeHash && ageMs < CODE_REPEATED_MS) return session
    // @guard oidc/code-flow--twice
    await this.#end(session.id)
    throw invalidGrant('the code was used before; its session has ended')
  }

  async #opened(
    { flow, proof }: PassedLogIn,
    { codeHash, keyRevision }: { readonly codeHash: string; readonly keyRevision: number },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<ApiSession> {
    const { logIns, state } = this.#deps
    const full = proof === null ? this.#proofOfSession(flow) : this.#proofOf(proof)
    if (full === null) throw invalidGrant('the credential was changed; log in again')
    const { certificateRequest = '' } = proof ?? {}
    const isBegun = proof === null
    const oidc = { ...ofFlow(flow), codeHash, isBegun, certificateRequest, keyRevision }
    const about = proof?.about ?? {}
    try {
      await logIns.open(full, shown, { ...about, api: null, oidc }, request.write)
    } catch (error) {
      if (!(error instanceof Problem && lostCodes.has(error.code))) throw error
      // Redeemed elsewhere at the same time: whichever was applied first made the session.
      const other = await this.#redeemed(flow, codeHash)
      if (other !== null) return other
      throw invalidGrant('the credential was changed; log in again')
    }
    const session = state.get('apiSession', flow.sessionId)
    if (session === undefined) throw invalidGrant('the session has ended')
    return session
  }

  /** Read it before a sealed text is opened: the text counts while this stays. */
  #keyRevision(): number {
    return this.#deps.state.get('sharedSecret', 'clusterKey')?.revision ?? 0
  }

  #proofOf(carriedProof: StoredProof): CredentialProof | null {
    const { state } = this.#deps
    const { identityId, authenticatorId, authenticatorRevision, certificate, token } = carriedProof
    const identity = state.get('identity', identityId)
    if (identity === undefined || isDisabled(identity, proposalNowMs(this.#deps))) return null
    if (lacksOwnFactor(pendingFactors(state, identity, { isMfaComplete: false }))) return null
    const authenticator = state.get('authenticator', authenticatorId)
    // A certificate is judged again at apply, whatever else was written of its authenticator: the
    // first log-in by one is noted there, and must not end those that are under way.
    const isByCertificate = certificate !== null && certificate !== undefined
    const isSame = isByCertificate || authenticator?.revision === authenticatorRevision
    // @guard oidc/code-flow--password
    if (authenticatorId !== '' && !isSame) return null
    return {
      identityId,
      authenticator,
      ...(isByCertificate ? { certificate } : {}),
      ...(token === null || token === undefined ? {} : { token }),
    }
  }

  /** A session that holds every factor replaces the proof that opened it. */
  #proofOfSession({ sessionId }: BegunFlow): CredentialProof | null {
    const standing = sessionValidity(this.#deps.state.recordsNow, sessionId)
    if (standing === null || lacksOwnFactor(standing.pendingFactors)) return null
    return { identityId: standing.identity.id, authenticator: undefined }
  }

  async #end(sessionId: string): Promise<void> {
    const payload = toBinary(SessionDeleteSchema, create(SessionDeleteSchema, { id: sessionId }))
    const { proposer } = this.#deps
    await proposer.propose({ kind: CommandKind.SESSION_DELETE, payload, actor: SYSTEM_ACTOR })
  }
}

const refused: LogInStep = {
  kind: 'refused',
  refusal: { code: 'UNAUTHORIZED', challenge: null },
}

/** Refusals by apply where another redemption, or another log-in, was applied first. */
// @guard oidc/code-flow--raced
const lostCodes: ReadonlySet<ProblemCode> = new Set([
  'INVALID_AUTH',
  'REVISION_MOVED',
  'COULD_NOT_VALIDATE',
])

function ofFlow({ sessionId, clientId }: BegunFlow): { sessionId: string; clientId: string } {
  return { sessionId, clientId }
}

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}

import { createHash } from 'node:crypto'

import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, SessionDeleteSchema } from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { lacksSessionFactor, pendingFactors } from '../../fsm/apply/authentication.ts'
import { sessionValidity } from '../../fsm/apply/session-validity.ts'
import { type Clock, earlierOfLocalAndQuorumNowMs, proposalNowMs } from '../../lib/clock.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { Problem, type ProblemCode } from '../../lib/problems.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LogInRequest, LogInService, OidcSessionOptions } from '../log-in/log-in.ts'
import type { CredentialProof } from '../log-in/proof.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { StartedLogInFlow, AuthenticatedLogIn, StoredCredentialProof } from './flow-steps.ts'
import { invalidGrantError } from './oauth-error.ts'

/**
 * A client that did not receive the response may redeem its code again within this time after the
 * first redemption, until its tokens are used.
 */
const CODE_REPEATED_MS = 10_000

interface FlowSessionsDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'quorumClockMs'>
  readonly proposer: Proposer
  readonly logIns: LogInService
}

/** Hash of a redeemed code, as the session that the code opened stores it. */
export function redeemedCodeHash(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/** The API sessions that log-in flows create and end. */
export class FlowSessions {
  readonly #deps: FlowSessionsDeps

  constructor(deps: FlowSessionsDeps) {
    this.#deps = deps
  }

  /**
   * Revision of the cluster key. Read it before you decrypt the state of a flow: the state machine
   * refuses to create the session if the revision has changed since.
   */
  keyRevision(): number {
    return this.#deps.state.get('sharedSecret', 'clusterKey')?.revision ?? 0
  }

  /** The session of a flow; undefined before it was created, and after it ended. */
  get({ sessionId }: StartedLogInFlow): ApiSession | undefined {
    return this.#deps.state.get('apiSession', sessionId)
  }

  /**
   * The session of a flow, as `sessionValidity` returns it; null if the session does not exist, or
   * if a second factor is still missing.
   */
  complete({ sessionId }: StartedLogInFlow): ReturnType<typeof sessionValidity> {
    const validity = sessionValidity(this.#deps.state.recordsNow, sessionId)
    return validity === null || lacksSessionFactor(validity.pendingFactors) ? null : validity
  }

  /**
   * The session that was just created or completed by redeeming the same code; null if no code of
   * the flow was redeemed yet, or the session does not exist any more.
   * @throws {OAuthError} invalid_grant if the code was redeemed earlier, or its tokens were used.
   * In both cases, the session ends.
   */
  async redeemed(flow: StartedLogInFlow, codeHash: string): Promise<ApiSession | null> {
    const session = this.get(flow)
    if (session === undefined || session.codeHash === '') return null
    const nowMs = earlierOfLocalAndQuorumNowMs(this.#deps) ?? proposalNowMs(this.#deps)
    const ageMs = nowMs - (session.codeRedeemedAt ?? 0)
    // @guard oidc/code-flow--late
    if (session.codeHash === codeHash && ageMs < CODE_REPEATED_MS) return session
    // @guard oidc/code-flow--twice
    await this.end(session.id)
    throw invalidGrantError('the code was used before; its session has ended')
  }

  /**
   * Creates the session of a redeemed code, or completes the session that already recorded a second
   * factor or the approval of a device.
   * @throws {OAuthError} invalid_grant when the credential changed since the log-in, or the session
   * has ended.
   */
  async redeem(
    { flow, proof }: AuthenticatedLogIn,
    { codeHash, keyRevision }: { readonly codeHash: string; readonly keyRevision: number },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<ApiSession> {
    const credentialProof = proof === null ? this.#recordedProof(flow) : this.currentProof(proof)
    if (credentialProof === null) throw credentialChangedError()
    const { certificateRequest = '' } = proof ?? {}
    const isBegun = proof === null
    const oidc = { ...flowSessionFields(flow), codeHash, isBegun, certificateRequest, keyRevision }
    const about = proof?.about ?? {}
    try {
      const client = { ...about, api: null, oidc }
      await this.#deps.logIns.open(credentialProof, shown, client, request.write)
    } catch (error) {
      if (!(error instanceof Problem && lostCodes.has(error.code))) throw error
      // Checks again, because another controller may have redeemed the same code at the same time.
      const other = await this.redeemed(flow, codeHash)
      if (other !== null) return other
      throw credentialChangedError()
    }
    const session = this.get(flow)
    if (session === undefined) throw invalidGrantError('the session has ended')
    return session
  }

  /**
   * The proof with the current record of its authenticator; null if the identity was deleted or
   * disabled, if its credential has changed, or if it now needs a second factor.
   */
  currentProof(stored: StoredCredentialProof): CredentialProof | null {
    const { state } = this.#deps
    const { identityId, authenticatorId, authenticatorRevision, certificate, token } = stored
    const identity = state.get('identity', identityId)
    if (identity === undefined || isDisabled(identity, proposalNowMs(this.#deps))) return null
    if (lacksSessionFactor(pendingFactors(state, identity, { isMfaComplete: false }))) return null
    const authenticator = state.get('authenticator', authenticatorId)
    // For a log-in by certificate, the authenticator's record may have changed, because the state
    // machine checks the certificate again. The first log-in with a certificate changes this
    // record, and must not end other log-ins in progress.
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

  /**
   * Proof from a session that already has all factors. The proof contains the session's identity,
   * but no authenticator. Null if the session does not exist, or if a second factor is still
   * missing.
   */
  #recordedProof(flow: StartedLogInFlow): CredentialProof | null {
    const validity = this.complete(flow)
    if (validity === null) return null
    return { identityId: validity.identity.id, authenticator: undefined }
  }

  async end(sessionId: string): Promise<void> {
    const payload = toBinary(SessionDeleteSchema, create(SessionDeleteSchema, { id: sessionId }))
    const { proposer } = this.#deps
    await proposer.propose({ kind: CommandKind.SESSION_DELETE, payload, actor: SYSTEM_ACTOR })
  }
}

/**
 * Error codes with which the state machine refuses to create a session, because another redemption
 * of the code, another log-in, or a change of the credential was applied before.
 */
// @guard oidc/code-flow--raced
const lostCodes: ReadonlySet<ProblemCode> = new Set([
  'INVALID_AUTH',
  'REVISION_MOVED',
  'COULD_NOT_VALIDATE',
])

/** The fields of a flow that the session record contains. */
export function flowSessionFields({
  sessionId,
  clientId,
}: StartedLogInFlow): Pick<OidcSessionOptions, 'sessionId' | 'clientId'> {
  return { sessionId, clientId }
}

function credentialChangedError(): Error {
  return invalidGrantError('the credential was changed; log in again')
}

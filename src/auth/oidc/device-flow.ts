import { randomUUID } from 'node:crypto'

import { type Clock, quorumOrLocalNowMs } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LogInRequest, LogInService } from '../log-in/log-in.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { MintedTokens, OidcTokens } from '../sessions/oidc-tokens.ts'
import { type FlowSessions, redeemedCodeHash, flowSessionFields } from './flow-sessions.ts'
import {
  type StartedLogInFlow,
  type DecryptedDeviceCode,
  LOG_IN_FLOW_TIMEOUT_MS,
} from './flow-steps.ts'
import { invalidGrantError } from './oauth-error.ts'
import type { AuthorizationRequest } from './public-clients.ts'
import type { FlowStateEncryption } from './flow-state-encryption.ts'

/** Path below the issuer: the last page for a user who approved the log-in of a device. */
export const DEVICE_DONE_PATH = '/device/done'

interface DeviceFlowDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'quorumClockMs'>
  readonly reads: LatestReads
  readonly logIns: LogInService
  readonly oidcTokens: OidcTokens
  readonly flowSessions: FlowSessions
  readonly seals: FlowStateEncryption
}

/**
 * Log-in flows that authorize a device (RFC 8628). A user logs in with the steps of `LogInFlow`.
 * The flow issues no authorization code; instead, the device exchanges its device code for tokens.
 */
export class DeviceFlow {
  readonly #deps: DeviceFlowDeps

  constructor(deps: DeviceFlowDeps) {
    this.#deps = deps
  }

  /** @returns the id of the flow, for the user's browser, and the device code, which is secret. */
  async begin(
    { clientId, scopes }: Pick<AuthorizationRequest, 'clientId' | 'scopes'>,
    issuer: string,
    userCode: string,
  ): Promise<{ readonly id: string; readonly deviceCode: string }> {
    const { seals } = this.#deps
    const flow: StartedLogInFlow = {
      clientId,
      scopes,
      issuer,
      // Empty: the flow issues no code, so no verifier has to match a challenge.
      challenge: '',
      redirectUri: `${issuer}${DEVICE_DONE_PATH}`,
      state: '',
      nonce: '',
      configTypes: [],
      sessionId: randomUUID(),
      isOfDevice: true,
    }
    const endsAtMs = quorumOrLocalNowMs(this.#deps) + LOG_IN_FLOW_TIMEOUT_MS
    const waiting = { flow, userCode, endsAtMs }
    return {
      id: await seals.seal('request', flow, LOG_IN_FLOW_TIMEOUT_MS),
      // The code stays recognizable for a while after it expires, so that the device gets
      // `expired_token`.
      deviceCode: await seals.seal('device', waiting, 2 * LOG_IN_FLOW_TIMEOUT_MS),
    }
  }

  /** @returns null for an unknown code, or for a code that expired long ago. */
  async open(deviceCode: string): Promise<DecryptedDeviceCode | null> {
    const keyRevision = this.#deps.flowSessions.keyRevision()
    const found = await this.#deps.seals.open('device', deviceCode)
    if (found === null) return null
    const { flow, userCode, endsAtMs } = found
    const isOver = quorumOrLocalNowMs(this.#deps) >= endsAtMs
    const { clientId, sessionId } = flow
    return { flow, clientId, sessionId, userCode, isOver, keyRevision }
  }

  /**
   * Whether the flow with this id has expired, or its session exists because a user has approved
   * the device or has to submit a second factor.
   */
  async isTaken(id: string): Promise<boolean> {
    const flow = await this.#deps.seals.open('request', id)
    return flow === null || this.#deps.flowSessions.get(flow) !== undefined
  }

  /**
   * Approves the device for which the user logged in. Creates the session, unless an earlier step
   * created it to record a factor.
   * @returns the redirect URI for the user; null if the log-in is not for a device, or it expired.
   * @throws {Problem} INVALID_AUTH; REVISION_MOVED if the credential changed since the log-in.
   */
  async approve(
    progressId: string,
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<string | null> {
    const { seals, flowSessions, logIns } = this.#deps
    const keyRevision = flowSessions.keyRevision()
    const passed = await seals.open('progress', progressId)
    if (passed?.flow.isOfDevice !== true) return null
    const { flow, proof } = passed
    const begun = flowSessions.get(flow)
    // Refuses the approval: another user, who also knows the user code, has logged in before this
    // user.
    if (proof !== null && begun !== undefined && begun.identityId !== proof.identityId) {
      throw new Problem('INVALID_AUTH')
    }
    if (proof !== null && begun === undefined) {
      const current = flowSessions.currentProof(proof)
      if (current === null) throw new Problem('INVALID_AUTH')
      const begins = { codeHash: '', isBegun: false, certificateRequest: '' }
      const oidc = { ...flowSessionFields(flow), ...begins, keyRevision }
      await logIns.open(current, shown, { ...proof.about, api: null, oidc }, request.write)
    }
    return flow.redirectUri
  }

  /**
   * Tokens for the device, issued by the controller that the device polls.
   * @returns null while this controller knows no session of the flow with all factors, usually
   * because no user has approved the device yet.
   * @throws {OAuthError} invalid_grant in the same cases as `FlowSessions.redeemed` and
   * `FlowSessions.redeem`.
   */
  async redeem(
    { flow, keyRevision }: DecryptedDeviceCode,
    { deviceCode, issuer }: { readonly deviceCode: string; readonly issuer: string },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<MintedTokens | null> {
    const { state, reads, oidcTokens, flowSessions } = this.#deps
    // The local state may lack a session that another controller has just created; the next poll
    // finds it.
    // @guard device-codes--factor
    if (flowSessions.complete(flow) === null) return null
    const codeHash = redeemedCodeHash(deviceCode)
    await reads.reachLatest()
    const session =
      (await flowSessions.redeemed(flow, codeHash)) ??
      (await flowSessions.redeem({ flow, proof: null }, { codeHash, keyRevision }, shown, request))
    const identity = state.get('identity', session.identityId)
    if (identity === undefined) throw invalidGrantError('the identity is gone')
    const { scopes } = flow
    return await oidcTokens.mint({ session, identity, issuer, scopes, nonce: '', generation: 1 })
  }
}

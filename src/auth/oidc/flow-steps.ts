import type { PendingFactor } from '../../fsm/apply/authentication.ts'
import type { OidcToken } from '../../pki/oidc-token.ts'
import type { LogInClientInfo, LogInRefusal } from '../log-in/log-in.ts'
import type { CredentialProof } from '../log-in/proof.ts'
import type { MintedTokens } from '../sessions/oidc-tokens.ts'
import type { ExternalJwtChallenge } from '../tokens/external-jwt-challenge.ts'
import type { AuthorizationRequest } from './public-clients.ts'

/** Time within which a user has to complete a log-in. */
export const LOG_IN_FLOW_TIMEOUT_MS = 10 * 60_000

/**
 * A log-in flow after the authorization request. Its encrypted id contains all of these fields;
 * controllers store no record about the flow until its session is created. For a device, the soft
 * state maps the user code to the encrypted id.
 */
export interface StartedLogInFlow extends AuthorizationRequest {
  readonly sessionId: string
  readonly issuer: string
  /** True: the user authorizes a device, which has a separate code. */
  readonly isOfDevice?: boolean
}

/**
 * A completed primary authentication in a flow. The authorization code is this value in encrypted
 * form.
 */
export interface AuthenticatedLogIn {
  readonly flow: StartedLogInFlow
  /**
   * Null if the session already exists, because it had to record a second factor or the approval of
   * a device. Otherwise the session is created with this proof.
   */
  readonly proof: StoredCredentialProof | null
}

/**
 * A proof that contains ids instead of records; the records are read again when the session is
 * created.
 */
export interface StoredCredentialProof {
  readonly identityId: string
  readonly authenticatorId: string
  readonly authenticatorRevision: number
  readonly certificate: CredentialProof['certificate'] | null
  readonly token: CredentialProof['token'] | null
  readonly about: Omit<LogInClientInfo, 'api' | 'oidc'>
  /** PEM; '' if the log-in contained no certificate request. */
  readonly certificateRequest: string
}

/** @param certificateRequest PEM; '' if the log-in contained no certificate request. */
export function toStoredCredentialProof(
  proof: CredentialProof,
  about: StoredCredentialProof['about'],
  certificateRequest: string,
): StoredCredentialProof {
  const { identityId, authenticator, certificate = null, token = null } = proof
  return {
    identityId,
    authenticatorId: authenticator?.id ?? '',
    authenticatorRevision: authenticator?.revision ?? 0,
    certificate,
    token,
    about,
    certificateRequest,
  }
}

/**
 * Result of one step of a log-in: refused, a factor is missing, or the identity is authenticated.
 */
export type LogInStepResult =
  | { readonly kind: 'refused'; readonly refusal: LogInRefusal }
  /** Second factors are missing. The client submits the factors with the same flow id. */
  | {
      readonly kind: 'pending'
      readonly factors: readonly PendingFactor[]
      readonly identityId: string
      /** Null unless `factors` contains the external JWT. */
      readonly challenge: ExternalJwtChallenge | null
    }
  | { readonly kind: 'passed'; readonly issuer: string; readonly progressId: string }

/** Contents of an encrypted device code. */
export interface PendingDeviceFlow {
  readonly flow: StartedLogInFlow
  readonly userCode: string
  /** Time at which the device code expires, UTC ms. */
  readonly endsAtMs: number
}

/** The flow of a device code, and whether the code has expired. */
export interface DecryptedDeviceCode {
  readonly flow: StartedLogInFlow
  readonly clientId: string
  readonly sessionId: string
  readonly userCode: string
  readonly isOver: boolean
  /**
   * Revision of the cluster key, read before the code was decrypted: the session is refused if the
   * key has changed since.
   */
  readonly keyRevision: number
}

/** The code of a completed log-in, and the redirect URI at which the client receives it. */
export interface AuthorizationCodeResponse {
  readonly redirectUri: string
  readonly code: string
  readonly state: string
  readonly issuer: string
}

/** The session to which a token belongs. */
export type TokenSession = Pick<OidcToken, 'sessionId' | 'identityId' | 'clientId'>

/** Tokens, and the certificate for the client's key to which they are bound. */
export interface FlowTokens extends MintedTokens {
  /** PEM, leaf first; null if the client requested no certificate. */
  readonly sessionCertificate: string | null
}

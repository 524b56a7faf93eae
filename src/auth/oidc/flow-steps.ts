import type { PendingFactor } from '../../fsm/apply/authentication.ts'
import type { OidcToken } from '../../pki/oidc-token.ts'
import type { AboutClient, LogInRefusal, OidcOpening } from '../log-in/log-in.ts'
import type { Proof } from '../log-in/proof.ts'
import type { MintedTokens } from '../sessions/oidc-tokens.ts'
import type { TokenChallenge } from '../tokens/challenge.ts'
import type { AuthorizationRequest } from './public-clients.ts'

/** A begun flow, as its sealed id says; no controller keeps anything of it. */
export interface BegunFlow extends AuthorizationRequest {
  readonly sessionId: string
  readonly issuer: string
  /** A person goes through it in place of a device, which brings its own code. */
  readonly isOfDevice?: boolean
}

/** Primary authentication that was right, on its way to the code. */
export interface PassedLogIn {
  readonly flow: BegunFlow
  /** The session is there already, as a factor had to be given in it; else the proof makes it. */
  readonly proof: CarriedProof | null
}

/** A proof without its record, which is read again where the session is made. */
export interface CarriedProof {
  readonly identityId: string
  readonly authenticatorId: string
  readonly authenticatorRevision: number
  readonly certificate: Proof['certificate'] | null
  readonly token: Proof['token'] | null
  readonly about: Omit<AboutClient, 'api' | 'oidc'>
  /** PEM; '': none came with the log-in. */
  readonly certificateRequest: string
}

/** @param certificateRequest PEM; '': none came with the log-in. */
export function carriedProof(
  proof: Proof,
  about: CarriedProof['about'],
  certificateRequest: string,
): CarriedProof {
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

export type LogInStep =
  | { readonly kind: 'refused'; readonly refusal: LogInRefusal }
  /** Second factors are missing: they are given under the same id. */
  | {
      readonly kind: 'pending'
      readonly factors: readonly PendingFactor[]
      readonly identityId: string
      /** Set where the token of a signer is missing among the bearer tokens of the request. */
      readonly challenge: TokenChallenge | null
    }
  | { readonly kind: 'passed'; readonly issuer: string; readonly progressId: string }

/** Contents of the secret of a device. */
export interface WaitingDeviceFlow {
  readonly flow: BegunFlow
  readonly userCode: string
  /** UTC ms. */
  readonly endsAtMs: number
}

/** The flow that the secret of a device leads to. */
export interface DeviceFlow {
  readonly flow: BegunFlow
  readonly clientId: string
  readonly sessionId: string
  readonly userCode: string
  readonly isOver: boolean
  /** {@link OidcOpening.keyRevision} of its secret. */
  readonly keyRevision: number
}

export interface CodeAnswer {
  readonly redirectUri: string
  readonly code: string
  readonly state: string
  readonly issuer: string
}

/** The session that a token speaks of. */
export type TokenOfSession = Pick<OidcToken, 'sessionId' | 'identityId' | 'clientId'>

/** Tokens, and a certificate for the key that the client asked them to be bound to. */
export interface FlowTokens extends MintedTokens {
  /** PEM, leaf first; null: none was asked for. */
  readonly sessionCertificate: string | null
}

import type { Identity } from '../../entities/kinds/identity.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { PendingFactor } from '../../fsm/apply/authentication.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import { type Actor, createEnrollmentActor, type CredentialIdField } from '../../ports/actor.ts'
import type { OidcToken } from '../../pki/oidc-token.ts'
import type { VerifiedToken } from '../tokens/token-verifier.ts'
import type { Idempotency, WriteOrigin, WriteRequest } from '../../ports/writer.ts'

/**
 * An identity with its session, from the state at the time when the controller admitted the
 * request.
 */
export interface SessionWithIdentity {
  readonly session: ApiSession
  readonly identity: Identity
  /** True: an administrator in a fully authenticated session. */
  readonly isAdmin: boolean
  /** Second factors that the session lacks; empty if it is fully authenticated. */
  readonly pendingFactors: readonly PendingFactor[]
  /** Verified token of an identity provider, if the session requires one. */
  readonly token?: VerifiedToken
}

/** An identity, proven by its API session. */
export interface SessionPrincipal extends SessionWithIdentity {
  readonly kind: 'session'
  readonly address: string
  /**
   * The permission that the admitted operation requires; the state machine checks again that the
   * identity has it.
   */
  readonly permission: SessionPermission
  /**
   * Version of the cluster key that signed the session token; absent in an OIDC session, and if
   * this request itself opened the session.
   */
  readonly keyVersion?: number
  /** The OIDC access token of the request, in an OIDC session. */
  readonly accessToken?: OidcToken
}

/**
 * The operating system user who connected to the admin socket; has the rights of an administrator.
 * Records that it creates have no owner.
 */
export interface HostUser extends Omit<SessionWithIdentity, 'token'> {
  readonly kind: 'hostUser'
  readonly actor: Actor
}

/** A monitoring system, identified by its certificate, which may only read. */
export interface MonitoringClient {
  readonly kind: 'monitor'
}

/** A router, identified by its certificate. */
interface RouterPrincipal {
  readonly kind: 'router'
  readonly routerId: string
  readonly address: string
}

/**
 * A client that enrolls, identified by its credential: an enrollment token, a token of an external
 * JWT signer, or a certificate of a CA.
 */
interface EnrollingPrincipal {
  readonly kind: 'enrolling'
  readonly shown: Partial<Record<Exclude<CredentialIdField, 'routerId'>, string>>
  readonly method: string
  readonly address: string
}

/** All kinds of senders that a request can have. */
export type Principal =
  | SessionPrincipal
  | HostUser
  | MonitoringClient
  | RouterPrincipal
  | EnrollingPrincipal

/** Principals that may call operations that require a permission. */
export type Caller = SessionPrincipal | HostUser

/** The actor for commands of a principal, as the log records it. */
export function actorForPrincipal(principal: Exclude<Principal, MonitoringClient>): Actor {
  switch (principal.kind) {
    case 'session': {
      const { identity, session, address, permission, token } = principal
      const { signerId = '', signerRevision = 0 } = token ?? {}
      const [identityId, sessionId] = [identity.id, session.id]
      const shown = { signerId, signerRevision: String(signerRevision) }
      return { case: 'session', value: { identityId, sessionId, address, permission, ...shown } }
    }
    case 'hostUser':
      return principal.actor
    case 'router': {
      const { routerId, address } = principal
      return createEnrollmentActor({ routerId }, { method: 'extend', address })
    }
    case 'enrolling': {
      const { shown, method, address } = principal
      return createEnrollmentActor(shown, { method, address })
    }
  }
}

/**
 * The origin of a write by an actor.
 * @param idempotency by default that of the request.
 */
export function writeOriginForActor(
  request: WriteRequest,
  actor: Actor,
  idempotency: Idempotency = request.idempotency,
): WriteOrigin {
  const { trace, isAbandoned, onProposed, onOutcome } = request
  return { trace, isAbandoned, onProposed, onOutcome, idempotency, actor }
}

import type { Idempotency, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { PasswordHashCaller } from '../factors/password-verifier.ts'

/**
 * An enrollment request over any transport: the caller's credentials, the request behind the write,
 * and the caller for whom a password hash is computed.
 */
export interface EnrollRequest {
  readonly write: WriteRequest
  readonly shown: CallerCredentials
  readonly turn: PasswordHashCaller
}

/**
 * Marks a write whose request ID the cluster does not store, so that a repeated request executes
 * again. For example, every request issues a new certificate: if a repeated request returned the
 * outcome of the first request, the certificate in its response would differ from the stored one.
 */
export const REQUEST_ID_NOT_STORED: Idempotency = { case: 'notKept' }

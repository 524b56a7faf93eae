import type { Idempotency, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { PasswordHashCaller } from '../factors/password-verifier.ts'

/** A request to enroll over any transport: its credentials and its write context. */
export interface EnrollRequest {
  readonly write: WriteRequest
  readonly shown: CallerCredentials
  readonly turn: PasswordHashCaller
}

/**
 * Every request issues a new certificate. If a repeated request id returned the outcome of the
 * first request, the stored certificate would differ from the returned one.
 */
export const REQUEST_ID_NOT_STORED: Idempotency = { case: 'notKept' }

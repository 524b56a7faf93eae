import type { Idempotency, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { HashCaller } from '../factors/password-verifier.ts'

/** A request to enroll over any transport: its credentials and its write context. */
export interface EnrollRequest {
  readonly write: WriteRequest
  readonly shown: CallerCredentials
  readonly turn: HashCaller
}

/**
 * The certificate that is returned is made for this request alone. Had the outcome of a request id
 * been that of an earlier request, the certificate that is kept would be another, and the one
 * returned nobody's.
 */
export const NOT_KEPT: Idempotency = { case: 'notKept' }

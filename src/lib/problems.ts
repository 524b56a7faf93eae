import type { RefusalCause } from './refusal-reason.ts'

/** When a client may repeat a request that failed. */
type Retry = 'never' | 'later' | 'after-election' | 'same-request-id'

interface ProblemSpec {
  readonly http: number
  readonly retry: Retry
  readonly message: string
}

/**
 * Error codes of the API, each with its HTTP status, whether a client may retry, and its default
 * message. Where OpenZiti clients compare a message, the message is the same as in OpenZiti.
 */
export const problemTypes = {
  NOT_FOUND: {
    http: 404,
    retry: 'never',
    message: 'The resource requested was not found or is no longer available',
  },
  UNAUTHORIZED: {
    http: 401,
    retry: 'never',
    message:
      'The request could not be completed. The session is not authorized or the credentials are invalid',
  },
  INVALID_AUTH: { http: 401, retry: 'never', message: 'The authentication request failed' },
  INVALID_AUTH_METHOD: {
    http: 400,
    retry: 'never',
    message: 'The supplied authentication method is not valid',
  },
  COULD_NOT_VALIDATE: {
    http: 400,
    retry: 'never',
    message:
      'The supplied request contains an invalid document or no valid accept content were available, see cause',
  },
  INVALID_FIELD: {
    http: 400,
    retry: 'never',
    message: 'The field contains an invalid value',
  },
  NOT_ACCEPTABLE: {
    http: 406,
    retry: 'never',
    message:
      'The supplied request contains an invalid document or no valid accept content were available, see cause',
  },
  UNSUPPORTED_CONTENT_TYPE: {
    http: 415,
    retry: 'never',
    message:
      'The supplied request contains an invalid document or no valid accept content were available, see cause',
  },
  COULD_NOT_PARSE_BODY: {
    http: 400,
    retry: 'never',
    message: 'The body of the request could not be parsed',
  },
  REQUEST_ENTITY_TOO_LARGE: {
    http: 413,
    retry: 'never',
    message: 'The request body is larger than this controller accepts (option api.bodyBytesMax)',
  },
  HEADER_NOT_ALLOWED: {
    http: 403,
    retry: 'never',
    message: 'The preflight request names a header that this API does not use',
  },
  EXPECTATION_FAILED: {
    http: 417,
    retry: 'never',
    message: 'The expectation of the Expect header cannot be met',
  },
  INVALID_FILTER: { http: 400, retry: 'never', message: 'The filter query supplied is invalid' },
  INVALID_SORT_IDENTIFIER: {
    http: 400,
    retry: 'never',
    message: 'The sort order supplied is invalid',
  },
  METHOD_NOT_ALLOWED: {
    http: 405,
    retry: 'never',
    message: 'The resource requested does not support this HTTP verb',
  },
  ENTITY_CAN_NOT_BE_DELETED: {
    http: 400,
    retry: 'never',
    message: 'The entity requested for delete can not be deleted',
  },
  ENTITY_CAN_NOT_BE_UPDATED: {
    http: 400,
    retry: 'never',
    message: 'The entity requested for update can not be updated',
  },
  CAN_NOT_DELETE_REFERENCED_ENTITY: {
    http: 409,
    retry: 'never',
    message: 'The entity can not be deleted because it is referenced',
  },
  MFA_EXISTS: {
    http: 409,
    retry: 'never',
    message: 'An MFA enrollment already exists for the current identity',
  },
  MFA_NOT_ENROLLED: {
    http: 409,
    retry: 'never',
    message: 'The current identity is not enrolled in MFA',
  },
  // OpenZiti clients recognize a wrong MFA code by status 400; after 401 they would log in again.
  MFA_INVALID_TOKEN: {
    http: 400,
    retry: 'never',
    message: 'The MFA code is not valid, or was used before',
  },
  INVALID_BACKING_TOKEN_TYPE: {
    http: 400,
    retry: 'never',
    message: 'This operation does not support the type of the session',
  },
  MAX_AUTHENTICATOR_METHODS_REACHED: {
    http: 409,
    retry: 'never',
    message: 'The identity already has an authenticator of this method, or too many authenticators',
  },
  CAN_NOT_UPDATE_AUTHENTICATOR: {
    http: 409,
    retry: 'never',
    message: 'The authenticator does not support this operation',
  },
  FEATURE_LEVEL_NOT_RAISED: {
    http: 503,
    retry: 'later',
    message:
      'The request needs a higher feature level, which is activated once every voter runs a version that supports it',
  },
  INVALID_POSTURE: {
    http: 409,
    retry: 'later',
    message: 'The client does not pass the posture checks that the service is granted on',
  },
  NO_EDGE_ROUTERS_AVAILABLE: {
    http: 400,
    retry: 'later',
    message: 'No edge routers are assigned and online to handle the requested connection',
  },
  CAN_NOT_UPDATE_ROUTER: {
    http: 409,
    retry: 'never',
    message: 'The router cannot be updated here: it was created by another API',
  },
  ENROLLMENT_EXISTS: {
    http: 409,
    retry: 'never',
    message: 'An unused enrollment of this method already exists',
  },
  INVALID_ENROLLMENT_TOKEN: {
    http: 400,
    retry: 'never',
    message: 'The enrollment token is unknown, used or expired',
  },
  INVALID_ENROLLMENT_JWT: {
    http: 400,
    retry: 'never',
    message: 'The token of the enrollment was issued by no external JWT signer',
  },
  INVALID_ENROLL_METHOD: {
    http: 400,
    retry: 'never',
    message: 'The enrollment token is for another enrollment method',
  },
  ENROLLMENT_EXPIRED: {
    http: 400,
    retry: 'never',
    message: 'The enrollment has expired; an administrator can refresh it',
  },
  ENROLLMENT_CA_NOT_VALID: {
    http: 400,
    retry: 'never',
    message:
      'The CA of the enrollment is not verified, or not enabled for enrollment by one-time token',
  },
  ENROLLMENT_NO_VALID_CAS: {
    http: 400,
    retry: 'never',
    message: 'No CA is registered for automatic enrollment',
  },
  ENROLLMENT_IDENTITY_ALREADY_ENROLLED: {
    http: 409,
    retry: 'never',
    message: 'An identity with this external id is already enrolled',
  },
  INVALID_ENROLLMENT_NOT_ALLOWED: {
    http: 409,
    retry: 'never',
    message: 'This signer does not allow enrollment by its tokens',
  },
  CERT_FAILED_VALIDATION: {
    http: 400,
    retry: 'never',
    message:
      'The client certificate is missing, or was not issued by a CA that is enabled for enrollment',
  },
  CERT_IN_USE: {
    http: 409,
    retry: 'never',
    message: 'The client certificate is already the credential of an identity',
  },
  MISSING_CERT_CLAIM: {
    http: 400,
    retry: 'never',
    message: 'The client certificate lacks the field that the CA takes the external id from',
  },
  MISSING_OR_INVALID_CSR: {
    http: 400,
    retry: 'never',
    message: 'A certificate signing request is missing',
  },
  COULD_NOT_PROCESS_CSR: {
    http: 400,
    retry: 'never',
    message: 'The certificate signing request could not be processed',
  },
  INVALID_CLIENT_CERT: {
    http: 400,
    retry: 'never',
    message: 'The certificate is not the one pending verification',
  },
  COULD_NOT_PARSE_PEM_BLOCK: {
    http: 400,
    retry: 'never',
    message: 'The PEM text could not be parsed, or is not exactly one certificate',
  },
  COULD_NOT_PARSE_DER_BLOCK: {
    http: 400,
    retry: 'never',
    message: 'The certificate in the PEM block could not be parsed',
  },
  EXPECTED_PEM_CERTIFICATE: {
    http: 400,
    retry: 'never',
    message: 'The PEM block is not a certificate',
  },
  INVALID_CERT_PEM: {
    http: 400,
    retry: 'never',
    message: 'The PEM text must hold exactly one certificate',
  },
  CERTIFICATE_IS_NOT_CA: {
    http: 400,
    retry: 'never',
    message: 'The certificate is not a CA certificate',
  },
  CERTIFICATE_FAILED_VALIDATION: {
    http: 400,
    retry: 'never',
    message: 'The certificate is not signed by the CA, or not valid at this time',
  },
  INVALID_COMMON_NAME: {
    http: 400,
    retry: 'never',
    message: 'The common name of the certificate is not the verification token of the CA',
  },
  CA_ALREADY_VERIFIED: { http: 409, retry: 'never', message: 'The CA is already verified' },
  REQUEST_ID_REUSED: {
    http: 409,
    retry: 'never',
    message: 'This net-request-id was used before for another request',
  },
  REQUEST_ID_EXPIRED: {
    http: 409,
    retry: 'never',
    message: 'This net-request-id is older than the replay window; its outcome is no longer known',
  },
  REVISION_MOVED: {
    http: 409,
    retry: 'later',
    message: 'A record this write depends on changed concurrently; read again and retry',
  },
  PRECONDITION_FAILED: {
    http: 412,
    retry: 'never',
    message: 'If-Match precondition failed; nothing was changed',
  },
  CHANGED_SINCE: {
    http: 409,
    retry: 'never',
    message: 'The record was changed after the entry, so the entry cannot be undone',
  },
  CANNOT_UNDO: { http: 409, retry: 'never', message: 'The entry cannot be undone' },
  RESTORE_UNDER_WAY: {
    http: 409,
    retry: 'later',
    message: 'Another restore is in progress; nothing was changed',
  },
  RESTORE_REFUSED: {
    http: 409,
    retry: 'never',
    message: 'The restore is refused; nothing was changed',
  },
  RATE_LIMITED: {
    http: 429,
    retry: 'later',
    message: 'The operation is already in progress, or was requested too often',
  },
  SERVER_TOO_MANY_REQUESTS: {
    http: 429,
    retry: 'later',
    message:
      'Too many requests to alter state have been issued. Please slow your request rate or try again later.',
  },
  TIMEOUT: {
    http: 503,
    retry: 'later',
    message: 'The request took longer than this controller allows',
  },
  CLUSTER_NO_LEADER: {
    http: 503,
    retry: 'after-election',
    message:
      'The cluster has no leader; nothing was changed. Retry; if it lasts, start the unreachable members',
  },
  OUTCOME_UNKNOWN: {
    http: 503,
    retry: 'same-request-id',
    message:
      'The write was submitted and its outcome is unknown; retry with the same net-request-id',
  },
  INDEX_NOT_REACHED: {
    http: 503,
    retry: 'later',
    message: 'This controller has not reached the index of net-min-index',
  },
  NODE_QUARANTINED: {
    http: 503,
    retry: 'later',
    message: 'This controller is quarantined because its state diverged; use another one',
  },
  TRANSFER_LEADERSHIP_ERROR: {
    http: 500,
    retry: 'later',
    message: 'Leadership could not be transferred',
  },
  MEMBERSHIP_REFUSED: {
    http: 409,
    retry: 'never',
    message: 'This membership change is not allowed',
  },
  MEMBERSHIP_BUSY: {
    http: 409,
    retry: 'later',
    message: 'Another membership change is in progress; nothing was changed',
  },
  TOLERANCE_REFUSED: {
    http: 409,
    retry: 'never',
    message: 'The change would reduce failure tolerance',
  },
  ADMIN_SOCKET_ONLY: {
    http: 403,
    retry: 'never',
    message: 'The operation is available only at the admin socket of a controller',
  },
  TICKET_REFUSED: { http: 403, retry: 'never', message: 'Invalid, used or expired join ticket' },
  CERTIFICATE_REFUSED: {
    http: 409,
    retry: 'never',
    message: 'The certificate cannot be issued, renewed or accepted',
  },
  CONFIGURATION_REFUSED: {
    http: 409,
    retry: 'never',
    message: 'The configuration file is invalid; nothing was changed',
  },
  PEER_UNREACHABLE: {
    http: 503,
    retry: 'later',
    message: 'Another controller that this request needs is unreachable',
  },
  INSUFFICIENT_STORAGE: {
    http: 507,
    retry: 'later',
    message: 'Not enough disk space on this controller; nothing was written',
  },
  UNHANDLED: { http: 500, retry: 'later', message: 'An unhandled error occurred' },
} as const satisfies Record<string, ProblemSpec>

export type ProblemCode = keyof typeof problemTypes

export function isProblemCode(text: string): text is ProblemCode {
  return Object.hasOwn(problemTypes, text)
}

/** Problem codes that the API reports under another code. */
export const reportedProblemCodes: Partial<Record<ProblemCode, ProblemCode>> = {
  NOT_ACCEPTABLE: 'COULD_NOT_VALIDATE',
  UNSUPPORTED_CONTENT_TYPE: 'COULD_NOT_VALIDATE',
  INVALID_ENROLLMENT_JWT: 'INVALID_ENROLLMENT_TOKEN',
}

/** The invalid field and the reason; `value` must never hold a secret. */
export interface FieldFault {
  readonly field: string
  readonly reason: string
  readonly value?: unknown
}

/** A refusal that is sent to the caller. For bugs in this program, use an assertion instead. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly fault: FieldFault | null
  /**
   * Reason of the refusal, which the response contains as `cause.message` when there is no field
   * fault.
   */
  readonly detail: string | null
  /** Value of Retry-After in seconds; null: not sent. */
  readonly retryAfterSeconds: number | null
  /** Structured details for the caller; never a secret. */
  readonly data: Readonly<Record<string, unknown>> | null
  /** Structured details that OpenZiti puts inside the cause. */
  readonly causeData: Readonly<Record<string, unknown>> | null
  /**
   * Reason why a log-in was refused. Only the operator may see it; it is never sent to the client.
   */
  readonly refusal: RefusalCause | null

  constructor(
    code: ProblemCode,
    options: {
      fault?: FieldFault
      detail?: string
      cause?: unknown
      retryAfterSeconds?: number
      data?: Readonly<Record<string, unknown>>
      causeData?: Readonly<Record<string, unknown>>
      refusal?: RefusalCause
    } = {},
  ) {
    super(options.detail ?? problemTypes[code].message, { cause: options.cause })
    this.code = code
    this.fault = options.fault ?? null
    this.detail = options.detail ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
    this.data = options.data ?? null
    this.causeData = options.causeData ?? null
    this.refusal = options.refusal ?? null
  }
}

/**
 * Refusal of one field.
 * @param reason completes a sentence about the field.
 */
export function fieldProblem(field: string, reason: string, value?: unknown): Problem {
  return new Problem('COULD_NOT_VALIDATE', { fault: { field, reason, value } })
}

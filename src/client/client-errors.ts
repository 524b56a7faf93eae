import { isJsonObject } from '../lib/text/json-value.ts'

/** A member did not respond. The message completes a sentence that begins "<address>: it …". */
export class NoResponseError extends Error {
  override readonly name: string = 'NoAnswer'
  /** True if the member may have received the request and acted on it. */
  readonly isSent: boolean

  constructor(reason: string, isSent: boolean, cause?: unknown) {
    super(reason, { cause })
    this.isSent = isSent
  }
}

export interface MemberFault {
  readonly origin: string
  /** Completes a sentence that begins "<address>: it …". */
  readonly reason: string
}

/** No member of the cluster responded to a request. */
export class UnreachableError extends Error {
  override readonly name = 'Unreachable'
  readonly faults: readonly MemberFault[]

  constructor(faults: readonly MemberFault[]) {
    super(faults.map(({ origin, reason }) => `${origin} ${reason}`).join('; '))
    this.faults = faults
  }
}

/** A write that must not be sent twice was sent, and no response arrived. */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknown'
  readonly fault: MemberFault

  constructor(fault: MemberFault, cause: unknown) {
    super(`${fault.origin} ${fault.reason}`, { cause })
    this.fault = fault
  }
}

/** The caller cancelled the request. */
export class CancelledError extends Error {
  override readonly name = 'Cancelled'
}

interface RefusedField {
  readonly field: string
  readonly reason: string
}

/** A refusal, from the error envelope of a controller or from an OAuth error. */
export class ApiRefusalError extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  /** Error code; '' if the response does not come from a controller. */
  readonly code: string
  /** Cause of the refusal; '' if the envelope contains only a general message. */
  readonly detail: string
  /** The invalid field; null when the refusal is not about a field. */
  readonly fault: RefusedField | null
  /** True if the response has a challenge, which requests a new authentication. */
  readonly hasChallenge: boolean
  /** The member that refused; '' if unknown. */
  readonly origin: string

  constructor(
    status: number,
    body: unknown,
    {
      hasChallenge = false,
      origin = '',
    }: { readonly hasChallenge?: boolean; readonly origin?: string } = {},
  ) {
    const { code, message, detail, fault } = readProblem(status, body)
    super(message)
    this.status = status
    this.code = code
    this.detail = detail
    this.fault = fault
    this.hasChallenge = hasChallenge
    this.origin = origin
  }
}

type ReadProblem = Pick<ApiRefusalError, 'code' | 'message' | 'detail' | 'fault'>

/** @param body may have any type, because another program may have sent the response. */
function readProblem(status: number, body: unknown): ReadProblem {
  const { error, error_description: description } = membersOf(body)
  // An OAuth error has a code and a sentence instead of the envelope (RFC 6749, 5.2).
  if (typeof error === 'string') {
    const message = textOf(description) || error
    return { code: error, message, detail: textOf(description), fault: null }
  }
  const { code, message, cause } = membersOf(error)
  const { field, reason, message: detail } = membersOf(cause)
  return {
    code: textOf(code),
    message: textOf(message) || `HTTP ${status}`,
    detail: textOf(detail),
    fault: textOf(field) === '' ? null : { field: textOf(field), reason: textOf(reason) },
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

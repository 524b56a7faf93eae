import { randomBytes } from 'node:crypto'
import { type Problem, problemTypes, reportedProblemCodes } from '../../../lib/problems.ts'
import type { ErrorResponseFormat } from '../operation-traits.ts'
import { versionMetaText } from './envelope.ts'

interface ProblemAnswer {
  readonly status: number
  readonly body: string
  readonly retryAfterSeconds: number | null
}

/**
 * Maximum characters of a value in an error response. A longer value is omitted: the response
 * explains the fault and need not repeat the request.
 */
const VALUE_CHARACTERS_MAX = 256
/**
 * Time in seconds in which a queue usually empties, a leader is elected, or a follower catches up.
 */
const RETRY_AFTER_SECONDS = 1
/** Matches names of fields whose values are never repeated in a response. */
const SECRET_FIELD = /password|token|secret|code|key|csr|jwt|session|authorization/i

/**
 * Converts a problem to an HTTP response. The `cause` of the exception is only for the log and is
 * never sent.
 */
export function problemResponse(
  problem: Problem,
  shape: ErrorResponseFormat | 'envelope' = 'envelope',
): ProblemAnswer {
  const { http, message } = problemTypes[problem.code]
  const error: Record<string, unknown> = {
    code: reportedProblemCodes[problem.code] ?? problem.code,
    message,
    requestId: newRequestId(),
  }
  const cause = causeOf(problem)
  if (cause !== null) error['cause'] = cause
  if (problem.data !== null) error['data'] = problem.data
  return {
    status: http,
    body: bodyIn(shape, error, http),
    retryAfterSeconds: problem.retryAfterSeconds ?? pauseOf(problem),
  }
}

function bodyIn(
  shape: ErrorResponseFormat | 'envelope',
  error: Readonly<Record<string, unknown>>,
  http: number,
): string {
  switch (shape) {
    case 'envelope':
      return `{"error":${JSON.stringify(error)},"meta":${versionMetaText}}`
    case 'bare':
      // Uses OpenZiti's code for status 415, which OpenZiti's tests expect.
      return JSON.stringify(http === 415 ? { ...error, code: 'UNSUPPORTED_MEDIA_TYPE' } : error)
    case 'oauth': {
      // Temporary errors are not sent as OAuth errors: OpenZiti clients log in again after an OAuth
      // error, but repeat their request after another error.
      // @guard oidc/floods--passing
      if (http === 429 || http >= 500) return bodyIn('envelope', error, http)
      const code = oauthCodes[http] ?? 'invalid_request'
      return JSON.stringify({ error: code, error_description: error['message'] })
    }
  }
}

/** OAuth error codes by HTTP status (RFC 6749, 4.1.2.1 and 5.2; RFC 6750, 3.1). */
const oauthCodes: Readonly<Record<number, string>> = {
  401: 'invalid_token',
}

/**
 * Seconds after which the client may retry; null if a retry never helps, or the status is neither
 * 429 nor 503.
 */
function pauseOf({ code }: Problem): number | null {
  const { http, retry } = problemTypes[code]
  return retry !== 'never' && (http === 429 || http === 503) ? RETRY_AFTER_SECONDS : null
}

function causeOf(problem: Problem): Record<string, unknown> | null {
  const { fault, detail, causeData } = problem
  if (causeData !== null) return { code: problem.code, message: problem.message, data: causeData }
  if (fault !== null) {
    const value = shownValue(fault.field, fault.value)
    return {
      field: fault.field,
      reason: fault.reason,
      ...(value === undefined ? {} : { value }),
    }
  }
  return detail === null ? null : { code: 'UNHANDLED', message: detail }
}

function shownValue(field: string, value: unknown): unknown {
  if (value === undefined || SECRET_FIELD.test(field)) return undefined
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text !== undefined && text.length <= VALUE_CHARACTERS_MAX ? value : undefined
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-'

/**
 * Ten random characters for the `requestId` of an error response, so that a user can refer to the
 * response.
 */
function newRequestId(): string {
  let id = ''
  for (const byte of randomBytes(10)) id += ALPHABET.charAt(byte & 63)
  return id
}

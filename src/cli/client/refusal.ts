import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'

interface Cause {
  readonly code?: unknown
  readonly message?: unknown
  readonly field?: unknown
  readonly reason?: unknown
}

interface ErrorBody {
  readonly code?: unknown
  readonly message?: unknown
  readonly cause?: Cause
}

const SENTENCE_CHARACTERS_MAX = 600

/** A controller refused. `message` is one sentence with the field. */
export class ApiRefusal extends CommandFailure {
  readonly status: number
  readonly code: string
  /** What the body calls the field at fault; null when the refusal is about none. */
  readonly field: string | null

  constructor(status: number, code: string, message: string, field: string | null = null) {
    super(EXIT_FAILED, message)
    this.status = status
    this.code = code
    this.field = field
  }
}

/** @returns null when the body is not in the API's envelope. */
export function errorIn(
  body: unknown,
): { readonly code: string; readonly error: ErrorBody } | null {
  const error = (body as { error?: ErrorBody } | null)?.error
  return typeof error?.code === 'string' ? { code: error.code, error } : null
}

/** The refusal of an answer that is no success. */
export function refusalIn(status: number, body: unknown): ApiRefusal {
  const found = errorIn(body)
  if (found === null) {
    return new ApiRefusal(status, '', `unexpected response status ${status}; is it a controller?`)
  }
  const { code, error } = found
  const { field, reason, message } = error.cause ?? {}
  const isField = typeof field === 'string' && field !== ''
  const detail = isField ? withField(field, String(reason)) : message
  const sentence = typeof detail === 'string' && detail !== '' ? detail : String(error.message)
  return new ApiRefusal(status, code, printable(sentence), isField ? field : null)
}

/** Reasons of the API family often begin with the field that they are about. */
function withField(field: string, reason: string): string {
  return reason.startsWith(`${field} `) ? reason : `${field}: ${reason}`
}

/** Text of a server: one bounded line without what moves the cursor of a terminal. */
function printable(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ').slice(0, SENTENCE_CHARACTERS_MAX)
}

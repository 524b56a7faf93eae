/** A refusal of a controller, as its error envelope says it. */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  /** The field that is at fault and why; null when the refusal is about none. */
  readonly fault: { readonly field: string; readonly reason: string } | null

  constructor(input: {
    readonly status: number
    readonly code: string
    readonly message: string
    readonly fault?: ApiProblem['fault']
  }) {
    super(input.message)
    this.status = input.status
    this.code = input.code
    this.fault = input.fault ?? null
  }
}

/** No controller answered. */
export class Unreachable extends Error {}

/** A change was sent, no answer came, and asking again could make it twice. */
export class OutcomeUnknown extends Error {}

/** The caller gave up waiting. */
export class Cancelled extends Error {}

interface ErrorBody {
  readonly error?: {
    readonly code?: unknown
    readonly message?: unknown
    readonly cause?: {
      readonly field?: unknown
      readonly reason?: unknown
      readonly message?: unknown
    }
  }
}

/** @param body whatever came; a proxy in between may answer with anything. */
export function problemOf(status: number, body: unknown): ApiProblem {
  const { error, error_description: description } = (
    typeof body === 'object' && body !== null ? body : {}
  ) as ErrorBody & { readonly error_description?: unknown }
  // OAuth has a code and a sentence in place of the envelope (RFC 6749, 5.2).
  if (typeof error === 'string') {
    return new ApiProblem({
      status,
      code: error,
      message: textOf(description) || error,
      fault: null,
    })
  }
  const { field, reason, message: detail } = error?.cause ?? {}
  const message = textOf(error?.message) || `HTTP ${status}`
  const more = textOf(detail)
  return new ApiProblem({
    status,
    code: textOf(error?.code) || String(status),
    message: more === '' || more === message ? message : `${message}: ${more}`,
    fault: typeof field === 'string' && field !== '' ? { field, reason: textOf(reason) } : null,
  })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

import { type ProblemCode, problems } from './problems.ts'

/** Field that was wrong, and why; `value` must never hold a secret. */
export interface FieldFault {
  readonly field: string
  readonly reason: string
  readonly value?: unknown
}

/** A refusal that reaches the caller. Mistakes of our own code are assertions, not problems. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly fault: FieldFault | null
  /** Shown as `cause.message` when there is no field fault. */
  readonly detail: string | null
  /** Sent as Retry-After, in seconds; null: not said. */
  readonly retryAfterSeconds: number | null
  /** Structured extras for the caller; never a secret. */
  readonly data: Readonly<Record<string, unknown>> | null
  /** The same, where the API family has it inside the cause. */
  readonly causeData: Readonly<Record<string, unknown>> | null

  constructor(
    code: ProblemCode,
    options: {
      fault?: FieldFault
      detail?: string
      cause?: unknown
      retryAfterSeconds?: number
      data?: Readonly<Record<string, unknown>>
      causeData?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(options.detail ?? problems[code].message, { cause: options.cause })
    this.code = code
    this.fault = options.fault ?? null
    this.detail = options.detail ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
    this.data = options.data ?? null
    this.causeData = options.causeData ?? null
  }
}

export function fieldProblem(field: string, reason: string, value?: unknown): Problem {
  return new Problem('COULD_NOT_VALIDATE', { fault: { field, reason, value } })
}

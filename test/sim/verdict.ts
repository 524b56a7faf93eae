/** Failure of a run. */
export interface Failure {
  /**
   * I1 to I21, C1 to C9 for circuits, `liveness`, `bad input`, `assert` for a failed assertion, or
   * `crash` for any other error.
   */
  readonly invariant: string
  readonly message: string
  readonly step: number
  readonly stack: string
}

export function failureOf(error: unknown, step: number): Failure {
  const message = error instanceof Error ? error.message : String(error)
  const named = /^([IC]\d+|liveness|bad input)\b/.exec(message)?.[1]
  const isAssertion = error instanceof Error && error.name === 'AssertionError'
  return {
    invariant: named ?? (isAssertion ? 'assert' : 'crash'),
    message: message.replaceAll('\n', ' '),
    step,
    stack: error instanceof Error ? (error.stack ?? '') : '',
  }
}

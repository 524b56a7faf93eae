/** Type of a value, an element or a result; compared with `===`. */
export type Scalar = null | boolean | number | string

/**
 * `ok`: answered, with `result`. `failed`: certainly without effect, and must never become visible.
 * `unknown`: took effect once, at any time after its call, or never.
 */
export type Outcome = 'ok' | 'failed' | 'unknown'

/** Operation that a client requests. */
export interface Request {
  /** Client that requested the operation; only shown in a counterexample. */
  readonly process: string | number
  /**
   * The object of the operation. Objects are checked separately, because a history is linearizable
   * if the history of each object is (P-compositionality).
   */
  readonly key: string
  /** Kind of operation; a word that the model defines. */
  readonly kind: string
  /** Argument of the operation in the model; `[from, to]` for a compare-and-set. */
  readonly argument: Scalar | readonly [Scalar, Scalar]
}

/**
 * Result and times of an operation. All times come from one clock, which must never run backwards.
 */
export interface Operation extends Request {
  readonly outcome: Outcome
  /** Null unless `ok`. */
  readonly result: Scalar | readonly Scalar[]
  readonly invokedAt: number
  /**
   * Infinity if the outcome is unknown. An operation that returns at the time of another one's call
   * overlaps it.
   */
  readonly returnedAt: number
  /**
   * Log index at which the operation took effect, or whose state it read; null if it is not known.
   */
  readonly index: number | null
}

/** The operations that may have taken effect, by object. @throws if the history is impossible. */
export function byKey(operations: readonly Operation[]): Map<string, Operation[]> {
  const objects = new Map<string, Operation[]>()
  for (const operation of operations) {
    const { outcome, invokedAt, returnedAt, index } = operation
    const isTimed = Number.isFinite(invokedAt) && returnedAt >= invokedAt
    const hasEnded = outcome === 'unknown' ? returnedAt === Infinity : Number.isFinite(returnedAt)
    if (!isTimed || !hasEnded) throw new Error(`impossible times: ${JSON.stringify(operation)}`)
    if (index !== null && !Number.isSafeInteger(index)) throw new Error(`no index: ${index}`)
    const object = objects.get(operation.key) ?? []
    objects.set(operation.key, object)
    if (outcome !== 'failed') object.push(operation)
  }
  return objects
}

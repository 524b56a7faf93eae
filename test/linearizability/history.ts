/** Type of a value, an element or an answer; compared by `===`. */
export type Scalar = null | boolean | number | string

/**
 * `ok`: answered, with `result`. `failed`: it certainly took no effect, and must never become
 * visible. `unknown`: it took effect once, at any time after its call, or never.
 */
export type Outcome = 'ok' | 'failed' | 'unknown'

/** Operation that a client requests. */
export interface Request {
  /** Client of the operation; only for readers of a counterexample. */
  readonly process: string | number
  /**
   * The object it is on. Objects are judged one by one, for a history is right when each of its
   * objects is (P-compositionality).
   */
  readonly key: string
  /** A word of the model. */
  readonly kind: string
  /** Argument of the operation in the model; `[from, to]` for a compare-and-set. */
  readonly argument: Scalar | readonly [Scalar, Scalar]
}

/**
 * Result and times of the operation. Times come from any clock that never runs backwards, the same
 * one for all operations.
 */
export interface Operation extends Request {
  readonly outcome: Outcome
  /** Null unless `ok`. */
  readonly result: Scalar | readonly Scalar[]
  readonly invokedAt: number
  /**
   * Infinity when unknown. One that returns at the very time at which another is invoked overlaps
   * it.
   */
  readonly returnedAt: number
  /** Log index at which it took effect, or whose state it read; null when not known. */
  readonly index: number | null
}

/**
 * The operations that may have taken effect, object by object. @throws on a history that nothing
 * can have recorded.
 */
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

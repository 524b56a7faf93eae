/**
 * A bug in this program. Assertions stay enabled in production: a broken invariant must stop the
 * affected part instead of spreading.
 */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/**
 * Checks a condition that only a bug in this program can violate.
 * @throws {AssertionError} when the condition does not hold.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/**
 * Returns the value, which only a bug in this program can leave undefined.
 * @throws {AssertionError} when the value is null or undefined.
 */
export function requirePresent<T>(value: T | null | undefined, message: string): T {
  assert(value !== null && value !== undefined, message)
  return value
}

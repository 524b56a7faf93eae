import { assert } from '../assert.ts'

/**
 * Converts a non-negative 64-bit integer to a number.
 * @throws {RangeError} when the value is negative or not a safe integer.
 */
export function toSafeInteger(value: bigint): number {
  if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`${value} is beyond a safe integer`)
  }
  const number = Number(value)
  assert(Number.isSafeInteger(number), 'a checked bigint is a safe integer')
  return number
}

/**
 * Checks all integers of a decoded message, so that later readers can convert each of them.
 * @throws {RangeError} when one is negative or not a safe integer.
 */
export function assertSafeIntegers(value: unknown): void {
  if (typeof value === 'bigint') toSafeInteger(value)
  else if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    for (const member of Object.values(value)) assertSafeIntegers(member)
  }
}

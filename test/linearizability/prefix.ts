import type { Operation } from './history.ts'

/**
 * The history up to the return of this operation; operations that had not returned by that time may
 * still have any result.
 */
export function upTo(
  operations: readonly Operation[],
  { returnedAt }: Operation,
): readonly Operation[] {
  const open = { outcome: 'unknown', result: null, returnedAt: Infinity } as const
  return operations
    .filter(({ invokedAt }) => invokedAt <= returnedAt)
    .map((one) => (one.returnedAt <= returnedAt ? one : { ...one, ...open }))
}

/**
 * Finds the result from which on the history cannot be explained, by bisection: later results
 * cannot explain a history that earlier ones have made impossible.
 * @param isExplicable checks the history up to this operation.
 */
export function firstInexplicable(
  operations: readonly Operation[],
  isExplicable: (last: Operation) => boolean,
): Operation {
  const returns = operations
    .filter(({ returnedAt }) => returnedAt !== Infinity)
    .sort((a, b) => a.returnedAt - b.returnedAt)
  let low = 0
  let high = returns.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    const last = returns[middle]
    if (last === undefined || isExplicable(last)) low = middle + 1
    else high = middle
  }
  const first = returns[high]
  if (first === undefined) throw new Error('what nobody answered needs no explanation')
  return first
}

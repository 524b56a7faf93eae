import type { Operation } from './history.ts'

/** The history as it was when this operation returned: what had not returned by then may yet be answered in any way. */
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
 * The answer with which a history that no order explains became one. By halves, for what cannot be explained is not
 * explained by what comes later.
 * @param isExplicable judges the history up to this operation.
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

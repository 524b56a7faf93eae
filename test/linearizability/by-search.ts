import { byKey, type Operation } from './history.ts'
import type { Model } from './models.ts'
import { firstInexplicable, upTo } from './prefix.ts'
import { type HistoryEvent, type Placement, PlacementSearch } from './placement.ts'
import type { Undecided, Verdict, Violation } from './verdict.ts'

export interface CheckOptions {
  /** Maximum number of configurations to try for one object; beyond it, the result is undecided. */
  readonly statesMax?: number
}

export const STATES_MAX = 500_000

/**
 * Whether each object has an order of its operations that agrees with real time and explains every
 * response (Herlihy and Wing 1990). Needs only the responses of the system. Exponential in the
 * worst case, so the number of steps is limited.
 */
export function checkBySearch(
  operations: readonly Operation[],
  model: Model,
  { statesMax = STATES_MAX }: CheckOptions = {},
): Verdict {
  const orders = new Map<string, readonly Operation[]>()
  let undecided: Undecided | null = null
  for (const [key, object] of byKey(operations)) {
    const relevant = model.relevant(object)
    const found = searched(relevant, model, statesMax)
    if (found.kind === 'undecided') undecided ??= { kind: 'undecided', key, statesMax }
    else if (found.kind === 'stuck') return violation(operations, key, model, statesMax)
    else orders.set(key, picked(relevant, found.order))
  }
  return undecided ?? { kind: 'linearizable', orders }
}

function searched(operations: readonly Operation[], model: Model, statesMax: number): Placement {
  const events = inRealTime(operations.map((operation, at) => ({ operation, at })))
  return new PlacementSearch(model, { operations, events }).run(statesMax)
}

/** At equal times, calls come before returns: those operations overlap. */
export function inRealTime(
  operations: readonly { readonly operation: Operation; readonly at: number }[],
): HistoryEvent[] {
  const timed = operations.flatMap(({ operation: { invokedAt, returnedAt }, at }) => [
    { at, isReturn: false, time: invokedAt },
    ...(returnedAt === Infinity ? [] : [{ at, isReturn: true, time: returnedAt }]),
  ])
  return timed.sort((a, b) => a.time - b.time || Number(a.isReturn) - Number(b.isReturn))
}

export function picked(operations: readonly Operation[], order: readonly number[]): Operation[] {
  return order.flatMap((at) => operations[at] ?? [])
}

function violation(
  history: readonly Operation[],
  key: string,
  model: Model,
  statesMax: number,
): Violation {
  const object = history.filter((one) => one.key === key && one.outcome !== 'failed')
  const relevantUpTo = (last: Operation): Operation[] => model.relevant(upTo(object, last))
  const culprit = firstInexplicable(
    object,
    (last) => searched(relevantUpTo(last), model, statesMax).kind !== 'stuck',
  )
  const needed = withoutNeedlessLooks(relevantUpTo(culprit), culprit, model)
  const found = searched(needed, model, statesMax)
  const operations = [...needed, ...seenThoughFailed(history, culprit)]
  return {
    kind: 'violation',
    key,
    model: model.name,
    reason: stuckReason(model, found.kind === 'stuck' ? found.before : []),
    operations: operations.sort((a, b) => a.invokedAt - b.invokedAt),
    culprit,
  }
}

export function stuckReason(model: Model, before: readonly unknown[]): string {
  const states = before.map((state) => model.describe(state)).join(' or ')
  return `no order explains what is marked: what came before leaves ${states}`
}

export function seenThoughFailed(history: readonly Operation[], culprit: Operation): Operation[] {
  const seen = new Set<unknown>([culprit.result].flat())
  return history.filter(
    ({ key, outcome, argument }) =>
      outcome === 'failed' &&
      key === culprit.key &&
      [argument].flat().some((value) => value !== null && seen.has(value)),
  )
}

const TRIES_MAX = 64
const TRY_STATES_MAX = 20_000

/**
 * Removes reads that the counterexample does not need. Leaving out a read only makes a history
 * easier to explain; leaving out a change does not. It removes smaller and smaller parts, so that
 * few attempts are sufficient for a long history.
 */
function withoutNeedlessLooks(
  operations: readonly Operation[],
  culprit: Operation,
  model: Model,
): readonly Operation[] {
  let kept = operations
  let part = kept.length
  for (let tries = 0, from = 0; tries < TRIES_MAX && part >= 1;) {
    const fewer = kept.filter(
      (operation, at) =>
        at < from || at >= from + part || operation === culprit || model.changes(operation),
    )
    const isLess = fewer.length < kept.length
    if (isLess) tries += 1
    if (isLess && searched(fewer, model, TRY_STATES_MAX).kind === 'stuck') kept = fewer
    else from += part
    if (from < kept.length) continue
    from = 0
    part = Math.floor(part / 2)
  }
  return kept
}

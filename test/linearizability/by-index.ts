import {
  type CheckOptions,
  inRealTime,
  picked,
  seenThoughFailed,
  STATES_MAX,
  stuckReason,
} from './by-search.ts'
import { byKey, type Operation } from './history.ts'
import type { Model } from './models.ts'
import { type HistoryEvent, type Placement, PlacementSearch } from './placement.ts'
import { firstInexplicable, upTo } from './prefix.ts'
import type { Undecided, Verdict, Violation } from './verdict.ts'

/**
 * Operations that took effect at one log index: usually one change, or reads of the resulting
 * state.
 */
interface Slot {
  readonly index: number
  readonly isChange: boolean
  readonly members: number[]
}

/**
 * For each operation, by its position in the history: its index or, if it has none, the bounds that
 * follow from real time.
 */
interface Bounds {
  /**
   * Index of the last slot with an operation that returned before this one was called; -1 if there
   * is none.
   */
  readonly lowest: readonly number[]
  /** Index of the first slot with an operation that was called after this one returned. */
  readonly highest: readonly number[]
}

/**
 * Checks whether the order of the log agrees with real time and explains every response. This takes
 * n log n steps if all operations have an index. Operations without an index are inserted by a
 * search like that of {@link checkBySearch}.
 *
 * This check is stricter than the search: an index that contradicts real time is a fault, even if
 * another order would explain the responses.
 */
export function checkByIndex(
  operations: readonly Operation[],
  model: Model,
  { statesMax = STATES_MAX }: CheckOptions = {},
): Verdict {
  const orders = new Map<string, readonly Operation[]>()
  let undecided: Undecided | null = null
  for (const [key, object] of byKey(operations)) {
    const candidates = seenOrLogged(object, model)
    const verdict = new LogOrder(operations, candidates, model).judged(statesMax)
    if (verdict === null) undecided ??= { kind: 'undecided', key, statesMax }
    else if ('kind' in verdict) return verdict
    else orders.set(key, verdict)
  }
  return undecided ?? { kind: 'linearizable', orders }
}

class LogOrder {
  readonly #history: readonly Operation[]
  readonly #operations: readonly Operation[]
  readonly #model: Model
  readonly #slots: readonly Slot[]
  readonly #slotOf: readonly number[]

  constructor(history: readonly Operation[], operations: readonly Operation[], model: Model) {
    this.#history = history
    this.#operations = operations
    this.#model = model
    const { slots, slotOf } = slotted(operations, model)
    this.#slots = slots
    this.#slotOf = slotOf
  }

  /** @returns an order that explains all responses, or null if the search did not finish. */
  judged(statesMax: number): Operation[] | Violation | null {
    const bounds = this.#bounds()
    if ('kind' in bounds) return bounds
    const isDetermined =
      this.#slotOf.every((slot) => slot !== -1) &&
      this.#slots.every(({ isChange, members }) => !isChange || members.length === 1)
    return isDetermined ? this.#replayed() : this.#searched(bounds, statesMax)
  }

  /** @returns a violation if the log contradicts real time. */
  #bounds(): Bounds | Violation {
    const operations = this.#operations
    const called = sortedBy(operations, ({ invokedAt }) => invokedAt)
    const returned = sortedBy(operations, ({ returnedAt }) => returnedAt)
    const lowest = operations.map(() => -1)
    let last: number | null = null
    let ended = 0
    for (const at of called) {
      const { invokedAt } = this.#operation(at)
      for (; this.#operation(returned[ended] ?? at).returnedAt < invokedAt; ended += 1) {
        const other = returned[ended] ?? at
        if (last === null || this.#slot(other) > this.#slot(last)) last = other
      }
      if (last === null) continue
      lowest[at] = this.#slot(last)
      const slot = this.#slot(at)
      if (slot !== -1 && slot < this.#slot(last)) return this.#outOfTime(last, at)
    }
    const highest = operations.map(() => this.#slots.length)
    let first = this.#slots.length
    let begun = called.length - 1
    for (const at of returned.reverse()) {
      const { returnedAt } = this.#operation(at)
      for (; begun >= 0; begun -= 1) {
        const other = called[begun] ?? at
        if (this.#operation(other).invokedAt <= returnedAt) break
        if (this.#slot(other) !== -1) first = Math.min(first, this.#slot(other))
      }
      highest[at] = first
    }
    return { lowest, highest }
  }

  #replayed(): Operation[] | Violation {
    const order = this.#slots.flatMap(({ members }) => members)
    let state = this.#model.initial
    for (const [placed, at] of order.entries()) {
      const operation = this.#operation(at)
      const next = this.#model.step(state, operation)
      if (next === undefined) {
        const reason = `index ${operation.index} holds ${this.#model.describe(state)}`
        return this.#violation(reason, operation, order.slice(0, placed + 1))
      }
      state = next
    }
    return picked(this.#operations, order)
  }

  #searched(bounds: Bounds, statesMax: number): Operation[] | Violation | null {
    const found = this.#placement(bounds, statesMax)
    if (found.kind === 'undecided') return null
    if (found.kind === 'placed') return picked(this.#operations, found.order)
    const partUpTo = (last: Operation): LogOrder => {
      const part = seenOrLogged(upTo(this.#operations, last), this.#model)
      return new LogOrder(this.#history, part, this.#model)
    }
    const culprit = firstInexplicable(
      this.#operations,
      (last) => partUpTo(last).#stuckIn(statesMax) === null,
    )
    const states = partUpTo(culprit).#stuckIn(statesMax) ?? found.before
    return partUpTo(culprit).#violation(stuckReason(this.#model, states), culprit)
  }

  /**
   * @returns the possible states of the object where no order continues; null if an order exists.
   */
  #stuckIn(statesMax: number): readonly unknown[] | null {
    const bounds = this.#bounds()
    if ('kind' in bounds) return null
    const found = this.#placement(bounds, statesMax)
    return found.kind === 'stuck' ? found.before : null
  }

  #placement(bounds: Bounds, statesMax: number): Placement {
    const puzzle = {
      operations: this.#operations,
      events: this.#events(bounds),
      after: this.#after(bounds),
    }
    return new PlacementSearch(this.#model, puzzle).run(statesMax)
  }

  /**
   * Events in the order of the slots. An operation without an index is called before the first slot
   * that it may follow, and returns after the last one.
   */
  #events({ lowest, highest }: Bounds): HistoryEvent[] {
    const calls = this.#slots.map((): HistoryEvent[] => [])
    const returns = this.#slots.map((): HistoryEvent[] => [])
    const events: HistoryEvent[] = []
    const lastCalls: HistoryEvent[] = []
    const lastReturns: HistoryEvent[] = []
    for (const at of sortedBy(this.#operations, ({ invokedAt }) => invokedAt)) {
      if (this.#slot(at) !== -1) continue
      const call = { at, isReturn: false }
      ;(calls[Math.max(0, lowest[at] ?? 0)] ?? lastCalls).push(call)
      if (this.#operation(at).outcome === 'unknown') continue
      const end = { at, isReturn: true }
      ;(returns[highest[at] ?? 0] ?? lastReturns).push(end)
    }
    for (const [slot, { members }] of this.#slots.entries()) {
      const own = members.map((at) => ({ operation: this.#operation(at), at }))
      const open = own.filter(({ operation }) => operation.returnedAt === Infinity)
      events.push(...(calls[slot] ?? []), ...inRealTime(own))
      events.push(...open.map(({ at }) => ({ at, isReturn: true })), ...(returns[slot] ?? []))
    }
    return [...events, ...lastCalls, ...lastReturns]
  }

  /**
   * Constraints that real time imposes on operations without an index, in addition to the order of
   * the slots.
   */
  #after({ lowest, highest }: Bounds): Map<number, number[]> {
    const after = new Map<number, number[]>()
    const order = (before: number, at: number): void => {
      if (!(this.#operation(before).returnedAt < this.#operation(at).invokedAt)) return
      const known = after.get(at)
      if (known === undefined) after.set(at, [before])
      else known.push(before)
    }
    const free = this.#slotOf.flatMap((slot, at) => (slot === -1 ? [at] : []))
    for (const at of free) {
      for (const member of this.#slots[lowest[at] ?? -1]?.members ?? []) order(member, at)
      for (const member of this.#slots[highest[at] ?? -1]?.members ?? []) order(at, member)
      for (const other of free) {
        if ((highest[other] ?? 0) >= (lowest[at] ?? 0)) order(other, at)
      }
    }
    return after
  }

  #outOfTime(first: number, second: number): Violation {
    const { index } = this.#operation(first)
    const reason = `returned with index ${index} before the marked one was invoked, which is of an earlier place in the log`
    return this.#violation(reason, this.#operation(second), [first, second])
  }

  /** @param shown operations that lead to the fault, in the order of the log; absent: all. */
  #violation(reason: string, culprit: Operation, shown?: readonly number[]): Violation {
    const places = shown ?? sortedBy(this.#operations, ({ index }) => index ?? Infinity)
    const operations = [
      ...seenThoughFailed(this.#history, culprit),
      ...picked(this.#operations, places),
    ]
    const { key } = culprit
    return { kind: 'violation', key, model: this.#model.name, reason, operations, culprit }
  }

  #slot(at: number): number {
    return this.#slotOf[at] ?? -1
  }

  #operation(at: number): Operation {
    const operation = this.#operations[at]
    if (operation === undefined) throw new Error(`no operation ${at}`)
    return operation
  }
}

/** Operations that a response or the log shows to have taken effect. */
function seenOrLogged(operations: readonly Operation[], model: Model): Operation[] {
  const relevant = new Set(model.relevant(operations))
  return operations.filter((operation) => operation.index !== null || relevant.has(operation))
}

/** Groups operations by log index; a change comes before the reads of its result. */
function slotted(
  operations: readonly Operation[],
  model: Model,
): { slots: Slot[]; slotOf: number[] } {
  const indexed = operations
    .flatMap(({ index }, at) => (index === null ? [] : [{ at, index }]))
    .map(({ at, index }) => ({ at, index, isChange: changes(operations[at], model) }))
    .sort((a, b) => a.index - b.index || Number(b.isChange) - Number(a.isChange))
  const slots: Slot[] = []
  const slotOf = operations.map(() => -1)
  for (const { at, index, isChange } of indexed) {
    const last = slots.at(-1)
    if (last?.index === index && last.isChange === isChange) last.members.push(at)
    else slots.push({ index, isChange, members: [at] })
    slotOf[at] = slots.length - 1
  }
  return { slots, slotOf }
}

function changes(operation: Operation | undefined, model: Model): boolean {
  return operation !== undefined && model.changes(operation)
}

/** Positions in the history, in ascending order of their values. */
function sortedBy(
  operations: readonly Operation[],
  value: (operation: Operation) => number,
): number[] {
  const values = operations.map(value)
  // Compared instead of subtracted, because Infinity minus Infinity is not a number.
  return values.map((_, at) => at).sort((a, b) => compare(values[a] ?? 0, values[b] ?? 0))
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}

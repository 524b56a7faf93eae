import type { Operation } from './history.ts'
import type { Model, Outlook } from './models.ts'

/** Event of operation `at`: its call or, if `isReturn`, its return. */
export interface HistoryEvent {
  readonly at: number
  readonly isReturn: boolean
}

export interface Puzzle {
  readonly operations: readonly Operation[]
  /**
   * Each operation is called once. An operation that returns must be placed between its call and
   * its return; any other operation may be placed at any time after its call.
   */
  readonly events: readonly HistoryEvent[]
  /** Operations that must be placed before this one although the events do not require it. */
  readonly after?: ReadonlyMap<number, readonly number[]>
}

export type Placement =
  | { readonly kind: 'placed'; readonly order: readonly number[] }
  | { readonly kind: 'undecided' }
  | {
      readonly kind: 'stuck'
      /** Among the operations that no order could place in time, the one that returns first. */
      readonly culprit: number
      /**
       * Some possible states of the object at the point where the search advanced furthest, in the
       * order of discovery.
       */
      readonly before: readonly unknown[]
    }

interface Frame {
  readonly at: number
  readonly before: unknown
  readonly frontier: number
  /** True if the search had no alternative. */
  readonly isForced: boolean
}

const STATES_SHOWN_MAX = 4

/**
 * The search of Wing and Gong (1993) as improved by Lowe (2017). It places operations one after the
 * other, chosen from those that can come next, and removes them in the opposite order. It tries no
 * set of placed operations twice with the same state. An operation that must be placed and does not
 * change the state is placed as soon as possible and never moved: every order with a later position
 * stays correct if the operation is moved here. Optional operations are tried last.
 */
export class PlacementSearch {
  readonly #model: Model
  readonly #operations: readonly Operation[]
  readonly #after: ReadonlyMap<number, readonly number[]>
  readonly #outlook: Outlook<unknown>
  /**
   * Linked list of the events that are not placed: the call of operation i is node 2i, its return
   * is node 2i+1; the last node is both head and end.
   */
  readonly #next: Int32Array
  readonly #previous: Int32Array
  readonly #end: number
  /** Position of each node among the events. */
  readonly #position: Int32Array
  readonly #isPlaced: Uint8Array
  /** For each operation, 1 if it returns and must be placed. */
  readonly #isRequired: Uint8Array
  readonly #seen = new Map<unknown, Set<string>>()
  readonly #frames: Frame[] = []
  #state: unknown
  /** Position of the last call that is placed. */
  #frontier = -1
  #missing = 0
  /** Position of the furthest return that blocked the search, and the states in which it did. */
  #furthest = -1
  #blockedIn = new Map<unknown, unknown>()

  constructor(model: Model, { operations, events, after }: Puzzle) {
    this.#model = model
    this.#operations = operations
    this.#after = after ?? new Map<number, number[]>()
    this.#outlook = model.outlook(operations)
    this.#end = 2 * operations.length
    this.#next = new Int32Array(this.#end + 1)
    this.#previous = new Int32Array(this.#end + 1)
    this.#position = new Int32Array(this.#end + 1)
    this.#isPlaced = new Uint8Array(operations.length)
    this.#isRequired = new Uint8Array(operations.length)
    this.#state = model.initial
    let last = this.#end
    for (const [position, { at, isReturn }] of events.entries()) {
      const node = isReturn ? returnOf(at) : callOf(at)
      this.#position[node] = position
      this.#link(last, node)
      last = node
      if (!isReturn) continue
      this.#isRequired[at] = 1
      this.#missing += 1
    }
    this.#link(last, this.#end)
  }

  /** @param statesMax maximum number of configurations to try. */
  run(statesMax: number): Placement {
    let states = 0
    this.#placeForced()
    let at = this.#candidate(null)
    while (this.#missing > 0) {
      if (at !== null) {
        if (!this.#tryToPlace(at)) at = this.#candidate(at)
        else {
          states += 1
          if (states > statesMax) return { kind: 'undecided' }
          this.#placeForced()
          at = this.#candidate(null)
        }
        continue
      }
      this.#noteBlocked()
      const taken = this.#takeBack()
      if (taken === null) {
        const culprit = (this.#furthest - 1) / 2
        return { kind: 'stuck', culprit, before: [...this.#blockedIn.values()] }
      }
      at = this.#candidate(taken)
    }
    return { kind: 'placed', order: this.#frames.map((frame) => frame.at) }
  }

  /**
   * The next candidate after `previous`: an operation that was called before any operation that is
   * not placed has returned.
   */
  #candidate(previous: number | null): number | null {
    const isRequired = previous === null ? 1 : this.#isRequired[previous]
    const from = previous === null ? this.#end : callOf(previous)
    return isRequired === 0
      ? this.#candidateAfter(from, 0)
      : (this.#candidateAfter(from, 1) ?? this.#candidateAfter(this.#end, 0))
  }

  #candidateAfter(from: number, isRequired: 0 | 1): number | null {
    for (let node = this.#following(from); this.#isCall(node); node = this.#following(node)) {
      const at = node / 2
      if (this.#isRequired[at] === isRequired && this.#isFree(at)) return at
    }
    return null
  }

  #placeForced(): void {
    let node = this.#following(this.#end)
    while (this.#isCall(node)) {
      const at = node / 2
      const isForced =
        this.#isRequired[at] === 1 &&
        this.#isFree(at) &&
        this.#model.step(this.#state, this.#operation(at)) === this.#state
      if (isForced) this.#place(at, this.#state, true)
      // The return of the placed operation may have ended the list of candidates, and other
      // operations may have waited for it.
      node = this.#following(isForced ? this.#end : node)
    }
  }

  #tryToPlace(at: number): boolean {
    const operation = this.#operation(at)
    const next = this.#model.step(this.#state, operation)
    // An operation without effect was placed earlier, or need not be placed.
    if (next === undefined || next === this.#state) return false
    if (!this.#outlook.mayFollow(this.#state, operation)) return false
    this.#place(at, next, false)
    if (this.#isNew()) return true
    this.#takeBack()
    return false
  }

  #place(at: number, state: unknown, isForced: boolean): void {
    this.#frames.push({ at, before: this.#state, frontier: this.#frontier, isForced })
    this.#state = state
    this.#frontier = Math.max(this.#frontier, this.#position[callOf(at)] ?? 0)
    this.#isPlaced[at] = 1
    this.#unlink(callOf(at))
    if (this.#isRequired[at] === 0) return
    this.#unlink(returnOf(at))
    this.#missing -= 1
  }

  /** @returns the last placed operation that had an alternative, after removing it. */
  #takeBack(): number | null {
    for (let frame = this.#frames.pop(); frame !== undefined; frame = this.#frames.pop()) {
      const { at } = frame
      if (this.#isRequired[at] === 1) {
        this.#relink(returnOf(at))
        this.#missing += 1
      }
      this.#relink(callOf(at))
      this.#isPlaced[at] = 0
      this.#state = frame.before
      this.#frontier = frame.frontier
      if (!frame.isForced) return at
    }
    return null
  }

  /**
   * The last placed call, and the calls before it that are not placed, identify the set of placed
   * operations.
   */
  #isNew(): boolean {
    let key = `${this.#frontier}`
    let node = this.#following(this.#end)
    while (node !== this.#end && (this.#position[node] ?? 0) < this.#frontier) {
      if (node % 2 === 0) key += `,${node}`
      node = this.#following(node)
    }
    const identity = this.#outlook.identity(this.#state)
    const keys = this.#seen.get(identity) ?? new Set<string>()
    this.#seen.set(identity, keys)
    if (keys.has(key)) return false
    keys.add(key)
    return true
  }

  #noteBlocked(): void {
    let node = this.#following(this.#end)
    while (this.#isCall(node)) node = this.#following(node)
    const furthest = this.#furthest === -1 ? -1 : (this.#position[this.#furthest] ?? 0)
    const position = this.#position[node] ?? 0
    if (position < furthest) return
    if (position > furthest) this.#blockedIn = new Map()
    this.#furthest = node
    if (this.#blockedIn.size >= STATES_SHOWN_MAX) return
    const identity = this.#outlook.identity(this.#state)
    if (!this.#blockedIn.has(identity)) this.#blockedIn.set(identity, this.#state)
  }

  #isFree(at: number): boolean {
    return this.#after.get(at)?.every((other) => this.#isPlaced[other] === 1) ?? true
  }

  #isCall(node: number): boolean {
    return node !== this.#end && node % 2 === 0
  }

  #operation(at: number): Operation {
    const operation = this.#operations[at]
    if (operation === undefined) throw new Error(`no operation ${at}`)
    return operation
  }

  #following(node: number): number {
    return this.#next[node] ?? this.#end
  }

  #link(node: number, next: number): void {
    this.#next[node] = next
    this.#previous[next] = node
  }

  #unlink(node: number): void {
    this.#link(this.#previous[node] ?? this.#end, this.#following(node))
  }

  /**
   * Nodes must be linked again in the opposite order of unlinking, because a node keeps the links
   * to its former neighbors.
   */
  #relink(node: number): void {
    this.#next[this.#previous[node] ?? this.#end] = node
    this.#previous[this.#following(node)] = node
  }
}

function callOf(at: number): number {
  return 2 * at
}

function returnOf(at: number): number {
  return 2 * at + 1
}

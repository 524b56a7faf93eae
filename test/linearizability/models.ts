import type { Operation, Scalar } from './history.ts'

/** Sequential behavior of one object. Pure: a step returns a new state and never changes one. */
export interface Model<State = unknown> {
  readonly name: string
  readonly initial: State
  /**
   * The state after the operation; undefined if its result is impossible. An operation with an
   * unknown outcome may have any result. An operation without effect returns the same state object.
   */
  step(state: State, operation: Operation): State | undefined
  /**
   * False for an operation that only reads. Two reads may have the same log index, which may also
   * be that of the change that they see.
   */
  changes(operation: Operation): boolean
  /**
   * Removes operations with an unknown outcome that no result can reveal: they are correct in every
   * position, so removing them changes no verdict and makes the search shorter. @throws if the
   * model cannot check an operation.
   */
  relevant(operations: readonly Operation[]): Operation[]
  /** Facts about the states that follow from the set of all operations on one object. */
  outlook(operations: readonly Operation[]): Outlook<State>
  describe(state: State): string
}

export interface Outlook<State> {
  /**
   * Key of a state, compared with `===`. If the same operations in two orders lead to the same key,
   * the same later results are correct. The key may omit everything that follows from the set of
   * these operations.
   */
  identity(state: State): unknown
  /**
   * False if a later result can no longer be correct once this change has followed this state, so
   * that the search notices this early.
   */
  mayFollow(state: State, change: Operation): boolean
}

/**
 * Operations: `write v`; `read`, whose result is the value; `cas [from, to]`, whose result is
 * whether the value was replaced.
 */
export function register(initial: Scalar = null): Model<Scalar> {
  return {
    name: 'register',
    initial,
    step: (value, operation) => {
      const { kind, argument, result, outcome } = operation
      if (kind === 'write') return argument as Scalar
      if (kind === 'read') return outcome === 'unknown' || result === value ? value : undefined
      const [from, to] = argument as readonly [Scalar, Scalar]
      const takesPlace = value === from
      if (outcome === 'ok' && result !== takesPlace) return undefined
      return takesPlace ? to : value
    },
    changes: ({ kind }) => kind !== 'read',
    outlook: () => ({ identity: (value) => value, mayFollow: () => true }),
    relevant: (operations) => {
      expectKinds(operations, ['write', 'read', 'cas'])
      const seen = new Set<unknown>()
      let isRefused = false
      for (const { kind, argument, result, outcome } of operations) {
        if (kind === 'read' && outcome === 'ok') seen.add(result)
        if (kind !== 'cas') continue
        if (!Array.isArray(argument)) throw new Error('a cas needs [from, to]')
        seen.add((argument as readonly Scalar[])[0])
        // A failed compare-and-set may be due to a value that no operation has read.
        if (result === false) isRefused = true
      }
      return operations.filter(({ kind, argument, outcome }) => {
        if (outcome === 'ok' || (isRefused && kind !== 'read')) return true
        if (kind === 'write') return seen.has(argument)
        return kind === 'cas' && seen.has((argument as readonly Scalar[])[1])
      })
    },
    describe: (value) => JSON.stringify(value),
  }
}

/** Added elements, the newest first: successive states share all nodes except one. */
interface Chain {
  readonly before: Chain | null
  readonly element: Scalar
  readonly size: number
}

const empty: Chain = { before: null, element: null, size: 0 }

/**
 * Operations: `add e`, each element at most once in a history; `read`, whose result contains all
 * elements in any order.
 */
export function uniqueSet(): Model<Chain> {
  const asSets = new WeakMap<object, ReadonlySet<Scalar>>()
  const setOf = (operation: Operation): ReadonlySet<Scalar> => {
    const known = asSets.get(operation) ?? new Set(elementsRead(operation))
    asSets.set(operation, known)
    return known
  }
  return {
    name: 'set',
    initial: empty,
    step: (set, operation) => {
      if (operation.kind === 'add') return follow(set, operation)
      if (operation.outcome === 'unknown') return set
      const read = setOf(operation)
      // A result that contains an element twice is longer than its set.
      if (elementsRead(operation).length !== set.size || read.size !== set.size) return undefined
      for (let at = set; at.before !== null; at = at.before)
        if (!read.has(at.element)) return undefined
      return set
    },
    changes: ({ kind }) => kind === 'add',
    relevant: (operations) => relevantUnique(operations, 'add'),
    outlook: (operations) => {
      const reads = operations.filter(isAnsweredRead).map(setOf)
      reads.sort((a, b) => a.size - b.size)
      // A read without an element must come before the element is added.
      const sizeMin = new Map<unknown, number>()
      for (const { kind, argument } of operations) {
        if (kind === 'add') sizeMin.set(argument, sizeOfLastWithout(argument as Scalar, reads))
      }
      return {
        // No element is added twice, so the operations alone determine the content of the set.
        identity: () => null,
        mayFollow: (set, { argument }) => set.size >= (sizeMin.get(argument) ?? 0),
      }
    },
    describe: describeChain,
  }
}

/**
 * Operations: `append e`, each element at most once in a history; `read`, whose result contains all
 * elements in order.
 */
export function appendList(): Model<Chain> {
  return {
    name: 'list',
    initial: empty,
    step: (list, operation) => {
      if (operation.kind === 'append') return follow(list, operation)
      if (operation.outcome === 'unknown') return list
      const read = elementsRead(operation)
      if (read.length !== list.size) return undefined
      for (let at = list; at.before !== null; at = at.before) {
        if (read[at.size - 1] !== at.element) return undefined
      }
      return list
    },
    changes: ({ kind }) => kind === 'append',
    relevant: (operations) => relevantUnique(operations, 'append'),
    outlook: (operations) => {
      // A list only grows, so the longest result shows the position of each of its elements.
      const reads = operations.filter(isAnsweredRead).map(elementsRead)
      const longest = reads.reduce((a, b) => (b.length > a.length ? b : a), [])
      return {
        // Up to that position, only one order is possible; later elements were read by no
        // operation.
        identity: () => null,
        mayFollow: ({ size }, { argument }) => size >= longest.length || longest[size] === argument,
      }
    },
    describe: describeChain,
  }
}

function follow(before: Chain, { argument }: Operation): Chain {
  return { before, element: argument as Scalar, size: before.size + 1 }
}

function elementsRead({ result }: Operation): readonly Scalar[] {
  if (!Array.isArray(result)) throw new Error('a read of many is answered with an array')
  return result as readonly Scalar[]
}

function isAnsweredRead({ kind, outcome }: Operation): boolean {
  return kind === 'read' && outcome === 'ok'
}

/**
 * Finds the size by bisection: in a correct history, each read contains all smaller ones. In an
 * incorrect history, the size of any read without the element is sufficient.
 */
function sizeOfLastWithout(element: Scalar, bySize: readonly ReadonlySet<Scalar>[]): number {
  let low = 0
  let high = bySize.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (bySize[middle]?.has(element) === true) high = middle
    else low = middle + 1
  }
  return bySize[low - 1]?.size ?? 0
}

function relevantUnique(operations: readonly Operation[], change: string): Operation[] {
  expectKinds(operations, [change, 'read'])
  const changed = new Set<unknown>()
  const seen = new Set<unknown>()
  for (const operation of operations) {
    const { kind, argument, outcome } = operation
    if (kind === change) {
      if (changed.has(argument)) throw new Error(`${change} ${String(argument)} comes twice`)
      changed.add(argument)
    } else if (outcome === 'ok') for (const element of elementsRead(operation)) seen.add(element)
  }
  return operations.filter(
    ({ kind, argument, outcome }) => outcome === 'ok' || (kind === change && seen.has(argument)),
  )
}

function expectKinds(operations: readonly Operation[], kinds: readonly string[]): void {
  const stranger = operations.find(({ kind }) => !kinds.includes(kind))
  if (stranger !== undefined) throw new Error(`${stranger.kind} is none of ${kinds.join(', ')}`)
}

const SHOWN_ELEMENTS_MAX = 12

function describeChain(chain: Chain): string {
  const last: string[] = []
  for (let at = chain; at.before !== null && last.length < SHOWN_ELEMENTS_MAX; at = at.before) {
    last.unshift(JSON.stringify(at.element))
  }
  const more = chain.size > last.length ? `${chain.size - last.length} more, ` : ''
  return `[${more}${last.join(', ')}]`
}

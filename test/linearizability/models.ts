import type { Operation, Scalar } from './history.ts'

/** Sequential behavior of one object. Pure: states are never changed, only followed by others. */
export interface Model<State = unknown> {
  readonly name: string
  readonly initial: State
  /**
   * The state after the operation, or undefined if its answer is impossible. An unknown operation
   * may have any answer. An operation without effect returns the same state object.
   */
  step(state: State, operation: Operation): State | undefined
  /**
   * False: it only looks. Two looks may share a log index with each other and with the change that
   * they see.
   */
  changes(operation: Operation): boolean
  /**
   * Removes the unknown operations that no answer could reveal: they are correct in every position,
   * so removing them changes no verdict and shortens the search. @throws if the model cannot check
   * an operation.
   */
  relevant(operations: readonly Operation[]): Operation[]
  /** Facts about the states that follow from all operations of one object together. */
  outlook(operations: readonly Operation[]): Outlook<State>
  describe(state: State): string
}

export interface Outlook<State> {
  /**
   * Compared by `===`. If the same operations in two orders lead to the same identity, the same
   * later answers are correct. It may omit everything that follows from the set of these operations
   * alone.
   */
  identity(state: State): unknown
  /**
   * False when some answer can not be right any more once this change has followed this state:
   * found out early.
   */
  mayFollow(state: State, change: Operation): boolean
}

/**
 * `write v`; `read`, answered with the value; `cas [from, to]`, answered with whether it took
 * place.
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
        // It may be refused because of a value that nobody read.
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

/** Added elements, the newest first: successive states share all but one node. */
interface Chain {
  readonly before: Chain | null
  readonly element: Scalar
  readonly size: number
}

const empty: Chain = { before: null, element: null, size: 0 }

/**
 * `add e`, each element at most once in a history; `read`, answered with all elements in any order.
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
      // An answer that names one twice is longer than its set.
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
      // A read without the element comes before it is added.
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
 * `append e`, each element at most once in a history; `read`, answered with all elements in order.
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
      // A list only grows, so the longest answer gives the position of each of its elements.
      const reads = operations.filter(isAnsweredRead).map(elementsRead)
      const longest = reads.reduce((a, b) => (b.length > a.length ? b : a), [])
      return {
        // Up to that position only one order is possible, and nobody read what follows.
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
 * By bisection: in a correct history each read contains all smaller ones. In a wrong one any read
 * without it is sufficient.
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

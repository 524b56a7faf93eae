import type { Operation } from './history.ts'

export type Verdict = Linearizable | Violation | Undecided

export interface Linearizable {
  readonly kind: 'linearizable'
  /**
   * For each object, one order that explains every result. Operations with an unknown outcome are
   * included if they took effect.
   */
  readonly orders: ReadonlyMap<string, readonly Operation[]>
}

/**
 * The search reached its limit. This neither confirms nor refutes the history, and must never count
 * as correct.
 */
export interface Undecided {
  readonly kind: 'undecided'
  readonly key: string
  readonly statesMax: number
}

export interface Violation {
  readonly kind: 'violation'
  readonly key: string
  readonly model: string
  /** One sentence. */
  readonly reason: string
  /**
   * The smallest part that cannot be explained, of this object only: no order explains the results
   * up to here, and every listed operation is necessary for this. It includes failed operations
   * that became visible.
   */
  readonly operations: readonly Operation[]
  /** The operation that cannot be placed. */
  readonly culprit: Operation
}

const LINES_MAX = 40
const LINE_CHARACTERS_MAX = 160

/**
 * Text for a person: the operation that cannot be placed, and the last operations before it, about
 * forty lines at most.
 */
export function print(verdict: Verdict): string {
  if (verdict.kind === 'linearizable') return 'linearizable'
  if (verdict.kind === 'undecided') {
    return `${verdict.key}: undecided after ${verdict.statesMax} states; a longer search may tell`
  }
  const { operations, culprit, model, key, reason } = verdict
  const from = Math.max(0, operations.length - LINES_MAX)
  // The operation that cannot be placed is always shown, even if others are omitted.
  const shown = operations.filter((operation, at) => at >= from || operation === culprit)
  const hidden = operations.length - shown.length
  const lines = shown.map((operation) => `${operation === culprit ? '>' : ' '} ${line(operation)}`)
  if (hidden > 0) lines.unshift(`  ${hidden} operations before`)
  return [cut(`${model} ${key}: ${reason}`), ...lines].join('\n')
}

function line(operation: Operation): string {
  const { process, kind, argument, result, outcome, invokedAt, returnedAt, index } = operation
  const asked = argument === null ? kind : `${kind} ${JSON.stringify(argument)}`
  const answer =
    outcome !== 'ok' ? outcome : result === null && argument !== null ? 'ok' : tail(result)
  const at = index === null ? '' : ` @${index}`
  return cut(`[${time(invokedAt)}, ${time(returnedAt)}] ${process}: ${asked} -> ${answer}${at}`)
}

/** Shows the end of a long list, because histories differ there. */
function tail(result: Operation['result']): string {
  const text = JSON.stringify(result)
  return text.length <= 80 ? text : `[${(result as unknown[]).length}] …${text.slice(-70)}`
}

function time(at: number): string {
  return at === Infinity ? '…' : `${Math.round(at * 1000) / 1000}`
}

function cut(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `${text.slice(0, LINE_CHARACTERS_MAX - 1)}…`
}

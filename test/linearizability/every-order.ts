import { answer, type Subject } from './generate.ts'
import type { Operation, Scalar } from './history.ts'

/**
 * A slow checker to compare with the others: tries every order of one object's operations, and
 * shares no code with them.
 */
export function isExplained(subject: Subject, operations: readonly Operation[]): boolean {
  const candidates = operations.filter(({ outcome }) => outcome !== 'failed')
  return goesOn(subject, candidates, [])
}

function goesOn(subject: Subject, left: readonly Operation[], object: readonly Scalar[]): boolean {
  if (left.every(({ outcome }) => outcome === 'unknown')) return true
  return left.some((operation) => {
    const others = left.filter((other) => other !== operation)
    if (others.some(({ returnedAt }) => returnedAt < operation.invokedAt)) return false
    const after = [...object]
    const result = answer(subject, operation, after)
    if (operation.outcome === 'ok' && text(subject, result) !== text(subject, operation.result)) {
      return false
    }
    return goesOn(subject, others, after)
  })
}

function text(subject: Subject, result: Operation['result']): string {
  const isSet = subject === 'set' && Array.isArray(result)
  return JSON.stringify(isSet ? [...(result as Scalar[])].sort() : result)
}

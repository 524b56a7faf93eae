import type { FieldFault, ProblemCode } from '../../lib/problems.ts'
import type { Outcome } from '../../ports/proposer.ts'

export type Refusal = Extract<Outcome, { ok: false }>

/** @param id of the record that the command created or changed; '' for none. */
export function acceptedOutcome(id: string): Outcome {
  return { ok: true, id }
}

export function refusedOutcome(code: ProblemCode, detail: string | null = null): Refusal {
  return { ok: false, code, fault: null, detail }
}

/** Refusal because of one field, which the response names. */
export function fieldFaultOutcome(
  fault: FieldFault,
  code: ProblemCode = 'COULD_NOT_VALIDATE',
): Refusal {
  return { ok: false, code, fault, detail: null }
}

/** A refusal with the words that OpenZiti uses. */
export function notFoundOutcome(entity: string, id: string): Refusal {
  return refusedOutcome('NOT_FOUND', `${entity} with id ${id.slice(0, 128)} not found`)
}

import type { FieldFault, ProblemCode } from '../../lib/problems.ts'
import type { Outcome } from '../../ports/proposer.ts'

export type Refusal = Extract<Outcome, { ok: false }>

/**
 * The outcome of a command that the state machine accepted.
 * @param id id of the record that the command created or changed; '' if there is none.
 */
export function acceptedOutcome(id: string): Outcome {
  return { ok: true, id }
}

export function refusedOutcome(code: ProblemCode, detail: string | null = null): Refusal {
  return { ok: false, code, fault: null, detail }
}

/** A refusal because of one field; the response contains the field. */
export function fieldFaultOutcome(
  fault: FieldFault,
  code: ProblemCode = 'COULD_NOT_VALIDATE',
): Refusal {
  return { ok: false, code, fault, detail: null }
}

/** A refusal with the same message as in OpenZiti. */
export function notFoundOutcome(entity: string, id: string): Refusal {
  return refusedOutcome('NOT_FOUND', `${entity} with id ${id.slice(0, 128)} not found`)
}

import { type FieldFault, Problem, type ProblemCode } from './problems.ts'

/** The problem for a write that the state machine refused. */
export function refusalProblem(refusal: {
  readonly code: ProblemCode
  readonly fault: FieldFault | null
  readonly detail: string | null
}): Problem {
  const { code, fault, detail } = refusal
  return new Problem(code, {
    ...(fault === null ? {} : { fault }),
    ...(detail === null ? {} : { detail }),
  })
}

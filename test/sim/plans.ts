import { drawCircuitPlan } from './circuits/circuit-plan.ts'
import { drawPlan, type Plan } from './plan.ts'
import type { Subject } from './tally.ts'

/** The function that draws a plan, by the subject of the run. */
export const plansOf: Readonly<Record<Subject, (seed: number) => Plan>> = {
  cluster: drawPlan,
  circuits: drawCircuitPlan,
}

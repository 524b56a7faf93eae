import { drawCircuitPlan } from './circuits/circuit-plan.ts'
import { drawPlan, type Plan } from './plan.ts'
import type { Subject } from './tally.ts'

/** How the plan of a seed is drawn, by what the run is about. */
export const plansOf: Readonly<Record<Subject, (seed: number) => Plan>> = {
  cluster: drawPlan,
  circuits: drawCircuitPlan,
}

import {
  circuitFailureCauses,
  type DialResult,
  dialResults,
  type Observation,
} from '../../ports/observations.ts'

/** Label for all failure causes of circuits without a separate series. */
const OTHER_CAUSE = 'OTHER'

/**
 * Counts circuit events at this controller since its start. Every result and cause is present from
 * the beginning, with the value 0, because a rate over a counter that appears later misses its
 * first events.
 */
export class DataPathCounts {
  readonly dials = new Map<DialResult, number>(dialResults.map((result) => [result, 0]))
  readonly failedCircuits = new Map<string, number>(
    [...circuitFailureCauses, OTHER_CAUSE].map((cause) => [cause, 0]),
  )
  createdCircuits = 0
  reroutedCircuits = 0

  note(fact: Observation): void {
    switch (fact.kind) {
      case 'dial':
        this.dials.set(fact.result, (this.dials.get(fact.result) ?? 0) + 1)
        return
      case 'circuit':
        if (fact.type === 'created') this.createdCircuits += 1
        else if (fact.type === 'pathUpdated') this.reroutedCircuits += 1
        return
      case 'circuitFailed': {
        const cause = this.failedCircuits.has(fact.cause) ? fact.cause : OTHER_CAUSE
        this.failedCircuits.set(cause, (this.failedCircuits.get(cause) ?? 0) + 1)
        return
      }
      default:
    }
  }
}

import type { TestCertificates } from './test-certificates.ts'
import type { Event, Plan } from './plan.ts'
import { simulate } from './simulate.ts'
import type { Failure } from './verdict.ts'

export interface Shrunk {
  readonly plan: Plan
  readonly failure: Failure
  readonly runs: number
}

const RUNS_MAX = 80
const MS_MAX = 120_000

/**
 * Removes from a failing plan every part without which it still fails: first events (delta
 * debugging, Zeller & Hildebrandt 2002), then fault rates one by one. The result is a plan that a
 * person can follow.
 */
export async function shrink(
  plan: Plan,
  failure: Failure,
  keyring: TestCertificates,
): Promise<Shrunk> {
  const beganMs = performance.now()
  let best: Shrunk = { plan, failure, runs: 0 }
  const tryOut = async (candidate: Plan): Promise<boolean> => {
    if (best.runs >= RUNS_MAX || performance.now() - beganMs > MS_MAX) return false
    const result = await simulate(candidate, keyring)
    const runs = best.runs + 1
    const isSame = !result.ok && result.failure.invariant === failure.invariant
    best = isSame ? { plan: candidate, failure: result.failure, runs } : { ...best, runs }
    return isSame
  }
  await shrinkEvents(() => best.plan, tryOut)
  for (const name of Object.keys(best.plan.rates) as (keyof Plan['rates'])[]) {
    if (best.plan.rates[name] === 0) continue
    await tryOut({ ...best.plan, rates: { ...best.plan.rates, [name]: 0 } })
  }
  const fewer = { ...best.plan.load, clients: 1 }
  if (best.plan.load.clients > 1) await tryOut({ ...best.plan, load: fewer })
  return best
}

async function shrinkEvents(
  current: () => Plan,
  tryOut: (candidate: Plan) => Promise<boolean>,
): Promise<void> {
  let parts = 2
  for (;;) {
    const { events } = current()
    if (events.length === 0 || parts > events.length * 2) return
    const size = Math.max(1, Math.ceil(events.length / parts))
    let isSmaller = false
    for (let from = 0; from < events.length && !isSmaller; from += size) {
      const rest: Event[] = [...events.slice(0, from), ...events.slice(from + size)]
      isSmaller = await tryOut({ ...current(), events: rest })
    }
    if (isSmaller) parts = Math.max(2, parts - 1)
    else if (size === 1) return
    else parts *= 2
  }
}

import type { TestCertificates } from './test-certificates.ts'
import type { Plan } from './plan.ts'
import { type Failure, failureOf } from './verdict.ts'
import { VirtualLoop } from './virtual-loop.ts'
import { type Finished, World } from './world.ts'

export type Result =
  | ({ readonly ok: true; readonly seed: number } & Finished)
  | {
      readonly ok: false
      readonly seed: number
      readonly failure: Failure
      readonly counts: Readonly<Record<string, number>>
    }

let current: World | null = null
// Makes an unhandled rejection fail the current run.
process.on('unhandledRejection', (error) => {
  current?.fail(error)
})

/** Runs one plan from start to end. */
export async function simulate(
  plan: Plan,
  keyring: TestCertificates,
  print?: (line: string) => void,
): Promise<Result> {
  const loop = new VirtualLoop()
  loop.install()
  let world: World | null = null
  try {
    world = new World(plan, keyring, loop, print)
    current = world
    return { ok: true, seed: plan.seed, ...(await world.run()) }
  } catch (error) {
    const counts = world?.tally.counts ?? {}
    return { ok: false, seed: plan.seed, failure: failureOf(error, loop.steps), counts }
  } finally {
    world?.end()
    current = null
  }
}

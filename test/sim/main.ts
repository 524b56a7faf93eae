import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type CampaignResult, runCampaign } from './campaign.ts'
import { describePlan, type Plan } from './plan.ts'
import { plansOf } from './plans.ts'
import { shrink } from './shrink.ts'
import { type Result, simulate } from './simulate.ts'
import { kindsOf, type Subject } from './tally.ts'
import { makeKeyring } from './worker.ts'

const USAGE = `Simulates whole clusters of controllers on virtual time, each seed another run of faults.

  node test/sim/main.ts [--first N] [--seeds N] [--workers N] [--until-failure]
      runs a range of seeds (1000 from 1) on all cores
  node test/sim/main.ts --seed N [--trace]
      repeats one run exactly; --trace prints every step
  node test/sim/main.ts --script FILE [--trace]
      repeats a script that an earlier failure has left behind

With --circuits the clusters have routers, links, and clients whose circuits these carry.

A failing seed prints one line, FAILED seed=N step=N invariant=NAME and why; the first one is made smaller and printed as
a script. The last lines are the hash over all that happened and how often each kind of fault and event did. Exit status:
0 all held, 1 something did not, 2 wrong usage.`

const SEEDS_FOR_ALL_KINDS = 1_000
const SEED_MS_MAX = 300_000
const PROGRESS_MS = 10_000

interface Wanted {
  readonly first: number
  readonly seeds: number
  readonly workers: number
  readonly untilFailure: boolean
  readonly seed: number | null
  readonly script: string | null
  readonly trace: boolean
  readonly subject: Subject
}

function usage(reason: string): never {
  console.error(`${reason}\n\n${USAGE}`)
  process.exit(2)
}

function readWanted(): Wanted {
  const number = (name: string, text: string | undefined, otherwise: number): number => {
    if (text === undefined || text === '') return otherwise
    const value = Number(text)
    if (!Number.isSafeInteger(value) || value < 0) usage(`--${name} takes a number, not ${text}`)
    return value
  }
  try {
    const { values } = parseArgs({
      options: {
        first: { type: 'string' },
        seeds: { type: 'string' },
        workers: { type: 'string' },
        seed: { type: 'string' },
        script: { type: 'string' },
        'until-failure': { type: 'boolean' },
        trace: { type: 'boolean' },
        circuits: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
    if (values.help === true) {
      console.log(USAGE)
      process.exit(0)
    }
    return {
      first: number('first', values.first, 1),
      seeds: number('seeds', values.seeds, 1_000),
      workers: number('workers', values.workers, availableParallelism()),
      untilFailure: values['until-failure'] ?? false,
      seed: values.seed === undefined || values.seed === '' ? null : number('seed', values.seed, 1),
      script: values.script ?? null,
      trace: values.trace ?? false,
      subject: values.circuits === true ? 'circuits' : 'cluster',
    }
  } catch (error) {
    usage(error instanceof Error ? error.message : String(error))
  }
}

function printFailure(result: Result & { readonly ok: false }): void {
  const { invariant, message, step } = result.failure
  console.log(`FAILED seed=${result.seed} step=${step} invariant=${invariant} ${message}`)
}

function printCounts(subject: Subject, counts: Readonly<Record<string, number>>): void {
  const list = (kinds: readonly string[]): string =>
    kinds.map((kind) => `${kind} ${counts[kind] ?? 0}`).join(' · ')
  console.log(`faults: ${list(kindsOf[subject].faults)}`)
  console.log(`events: ${list(kindsOf[subject].events)}`)
}

async function explain(
  plan: Plan,
  failure: Extract<Result, { ok: false }>['failure'],
): Promise<void> {
  const shrunk = await shrink(plan, failure, await makeKeyring())
  const folder = join(process.cwd(), '.test', 'sim')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${plan.circuits === null ? 'seed' : 'circuits'}-${plan.seed}.json`)
  writeFileSync(path, JSON.stringify(shrunk.plan, null, 2))
  console.log(
    `made smaller in ${shrunk.runs} runs: ${plan.events.length} events → ${shrunk.plan.events.length}`,
  )
  console.log(describePlan(shrunk.plan))
  console.log(
    `fails with ${shrunk.failure.invariant} at step ${shrunk.failure.step}: ${shrunk.failure.message}`,
  )
  console.log(shrunk.failure.stack)
  console.log(`repeat it with: node test/sim/main.ts --script ${path}`)
}

async function replay(plan: Plan, isTraced: boolean): Promise<number> {
  const print = console.log
  if (isTraced) print(describePlan(plan))
  const result = await simulate(plan, await makeKeyring(), isTraced ? print : undefined)
  if (result.ok) {
    console.log(
      `seed ${plan.seed}: ${result.steps} steps, ${result.acknowledged} writes acknowledged, ${(result.virtualMs / 1000).toFixed(1)} s of virtual time`,
    )
    printCounts(plan.circuits === null ? 'cluster' : 'circuits', result.counts)
    console.log(`trace ${result.trace}`)
    return 0
  }
  printFailure(result)
  console.log(result.failure.stack)
  if (!isTraced) await explain(plan, result.failure)
  return 1
}

async function campaign(wanted: Wanted): Promise<number> {
  const beganMs = performance.now()
  let toldMs = beganMs
  const result = await runCampaign({
    ...wanted,
    seedMsMax: SEED_MS_MAX,
    onResult: (one, done) => {
      if (!one.ok) printFailure(one)
      const nowMs = performance.now()
      if (nowMs - toldMs < PROGRESS_MS) return
      toldMs = nowMs
      const perMinute = Math.round((done * 60_000) / (nowMs - beganMs))
      console.log(`${done} of ${wanted.seeds} seeds, ${perMinute} a minute`)
    },
  })
  const [failed] = result.failures
  if (failed !== undefined) await explain(plansOf[wanted.subject](failed.seed), failed.failure)
  return judge(wanted, result, performance.now() - beganMs)
}

function judge(wanted: Wanted, result: CampaignResult, tookMs: number): number {
  const { done, failures, steps, stepsMin, acknowledged, tally, checkMs, checkedMs } = result
  const seconds = tookMs / 1000
  console.log(
    `simulated ${done} seeds from ${wanted.first} in ${seconds.toFixed(1)} s: ${failures.length} failed, ${acknowledged} writes acknowledged`,
  )
  console.log(
    `${steps} steps, ${stepsMin} in the shortest run, ${Math.round(steps / seconds)} a second, ${Math.round((done * 60) / seconds)} seeds a minute, ${((checkMs * 100) / Math.max(1, checkedMs)).toFixed(0)} % of the time in the invariants`,
  )
  printCounts(wanted.subject, tally.counts)
  const missing = wanted.seeds >= SEEDS_FOR_ALL_KINDS && failures.length === 0 ? tally.missing : []
  if (missing.length > 0) console.log(`never happened: ${missing.join(', ')}`)
  console.log(`trace ${result.trace}`)
  return failures.length === 0 && missing.length === 0 ? 0 : 1
}

const wanted = readWanted()
if (wanted.script !== null) {
  process.exit(await replay(JSON.parse(readFileSync(wanted.script, 'utf8')) as Plan, wanted.trace))
} else if (wanted.seed !== null) {
  process.exit(await replay(plansOf[wanted.subject](wanted.seed), wanted.trace))
} else {
  process.exit(await campaign(wanted))
}

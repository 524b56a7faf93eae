// Adds each bug of index.ts to a separate copy of the source, and checks that each is detected;
// `--help` lists the options.
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Bug, bugs } from './index.ts'
import { describeVerdict, Trial } from './trial.ts'

const HELP = `node test/zoo/run.ts [options]

Plants each of ${bugs.length} bugs of other systems in a copy of the source. The random campaign of the simulator or the
scenario of that bug must fail on the copy, and must pass on the source as it stands.

  --only N[,N]       these bugs alone
  --seeds N          of a campaign, at most (500)
  --minutes N        of one bug, at most (10)
  --jobs N           at once (one a core)
  --fresh            begin each campaign at seed 1, not at the seed that is known to find it
  --simulator CMD    the campaign, run in the copy; takes --first N --seeds N --until-failure
                     (node test/sim/main.ts --workers 1)

Prints a line a bug: number, name, what caught it, seed and step, and ends with 1 unless all are caught.`

/** Interval of progress messages. */
const TELL_MS = 30_000

class Wrong extends Error {}

function options(): {
  readonly chosen: readonly Bug[]
  readonly seeds: number
  readonly minutes: number
  readonly jobs: number
  readonly isFresh: boolean
  readonly simulator: readonly string[]
} {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      seeds: { type: 'string', default: '500' },
      minutes: { type: 'string', default: '10' },
      jobs: { type: 'string', default: `${availableParallelism()}` },
      fresh: { type: 'boolean', default: false },
      simulator: { type: 'string', default: 'node test/sim/main.ts --workers 1' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    console.log(HELP)
    process.exit(0)
  }
  const only = values.only.split(',').filter((word) => word !== '')
  const numbers = only.map((word) => count(word, 'only'))
  const unknown = numbers.find((one) => !bugs.some(({ number }) => number === one))
  if (unknown !== undefined) throw new Wrong(`there is no bug ${unknown}`)
  return {
    chosen: bugs.filter(({ number }) => only.length === 0 || numbers.includes(number)),
    seeds: count(values.seeds, 'seeds'),
    minutes: count(values.minutes, 'minutes'),
    jobs: count(values.jobs, 'jobs'),
    isFresh: values.fresh,
    simulator: values.simulator.split(' ').filter((word) => word !== ''),
  }
}

function count(word: string, option: string): number {
  const value = Number(word)
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new Wrong(`--${option} takes numbers from 1 on, not "${word}"`)
  }
  return value
}

async function main(): Promise<number> {
  const { chosen, seeds, minutes, jobs, isFresh, simulator } = options()
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-zoo-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const trial = new Trial(folder, { simulator, seeds, msMax: minutes * 60_000, isFresh })
  const waiting = [...chosen]
  let caught = 0
  const underWay = new Set<number>()
  const telling = setInterval(() => {
    console.error(`… ${[...underWay].join(', ')} under way, ${waiting.length} to come`)
  }, TELL_MS)
  const work = async (): Promise<void> => {
    for (let bug = waiting.shift(); bug !== undefined; bug = waiting.shift()) {
      underWay.add(bug.number)
      const verdict = await trial.judge(bug)
      underWay.delete(bug.number)
      if (verdict.isCaught) caught += 1
      console.log(describeVerdict(bug, verdict))
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, chosen.length) }, work))
  clearInterval(telling)
  console.log(`${caught} of ${chosen.length} caught`)
  return caught === chosen.length ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage =
    error instanceof Wrong || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  if (isUsage !== true) throw error
  console.error(`${error instanceof Error ? error.message : String(error)}; see --help`)
  process.exitCode = 2
}

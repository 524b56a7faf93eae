import { parseArgs } from 'node:util'
import { checkTrace, type Finding } from './check.ts'
import { mutants, recordMutant } from './mutants.ts'
import { recordHosts, type Recording, recordSimulation } from './record.ts'
import { validate } from './tlc.ts'
import { readTrace, writeTrace } from './trace-file.ts'

// Checks recorded runs of the consensus core against FlotillaRaft.tla: docs/internals/engine.md
// explains the output.

const { values: options } = parseArgs({
  options: {
    /** tla2tools.jar: if given, TLC also checks the runs. */
    jar: { type: 'string' },
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    /** Virtual duration of a seed's run. */
    'run-ms': { type: 'string', default: '3000' },
    /** A longer run is checked only up to this event: TLC is slower with longer logs. */
    'events-max': { type: 'string', default: '2000' },
    /** Runs three hosts over gRPC instead of the simulation. */
    hosts: { type: 'boolean', default: false },
    /** Runs with a mistake in the Raft core, which the check must reject: a name, or `all`. */
    mutant: { type: 'string' },
    /** Writes the first seed's run to a file and checks nothing. */
    record: { type: 'string' },
    /**
     * With --record: writes the run of the first seed that ends early or fails the check, or else
     * the run of the last seed.
     */
    'until-failure': { type: 'boolean', default: false },
    /** Checks a run from a file. */
    trace: { type: 'string' },
  },
})
const first = Number(options.first)
const seeds = Array.from({ length: Number(options.seeds) }, (_, at) => first + at)
const runMs = Number(options['run-ms'])
const eventsMax = Number(options['events-max'])

interface Judged {
  readonly isExplained: boolean
  /** The run was completed, and both checkers agree. */
  readonly isWhole: boolean
  readonly events: number
}

/**
 * Checks the run with the TypeScript equivalent, and also with TLC if a jar is given: both must
 * name the same event.
 */
async function judge(name: string, recording: Recording): Promise<Judged> {
  const { trace, failure } = recording
  const part = { ...trace, events: trace.events.slice(0, eventsMax) }
  const events = part.events.length
  const startedMs = performance.now()
  const finding = checkTrace(part)
  const seconds = (performance.now() - startedMs) / 1000
  let isAgreed = true
  let figures = `${events} events, ${seconds.toFixed(1)} s`
  if (options.jar !== undefined) {
    const verdict = await validate(options.jar, part)
    figures += `, TLC ${verdict.states} states, ${verdict.seconds.toFixed(1)} s`
    isAgreed = (verdict.culprit?.number ?? null) === (finding?.number ?? null)
    if (!isAgreed) console.log(`${name}: TLC says otherwise: ${JSON.stringify(verdict)}`)
  }
  const said =
    finding === null ? 'ok' : `event ${finding.number} is not explained: ${told(finding)}`
  console.log(`${name}: ${figures}: ${said}`)
  if (failure !== null) console.log(`${name}: the run ended early: ${failure.message}`)
  return { isExplained: finding === null, isWhole: isAgreed && failure === null, events }
}

function told({ reason, event }: Finding): string {
  return `not so: ${reason}; ${JSON.stringify(event).slice(0, 600)}`
}

async function judgeAll(): Promise<boolean> {
  if (options.trace !== undefined)
    return isGood(await judge(options.trace, readTrace(options.trace)))
  if (options.hosts) return isGood(await judge('hosts', await recordHosts(40)))
  let explained = 0
  let events = 0
  for (const seed of seeds) {
    const judged = await judge(`seed ${seed}`, await recordSimulation(seed, runMs))
    explained += isGood(judged) ? 1 : 0
    events += judged.events
  }
  console.log(`${explained} of ${seeds.length} runs explained, ${events} events`)
  return explained === seeds.length
}

function isGood({ isExplained, isWhole }: Judged): boolean {
  return isExplained && isWhole
}

/**
 * A mistake is visible only in a run that exercises it: this checks the first run that the
 * simulation or the TypeScript equivalent rejects.
 */
async function isCaught(name: string): Promise<boolean> {
  const recording = await recordMutant(name, seeds, runMs)
  const { isExplained, isWhole } = await judge(name, { ...recording, failure: null })
  return !isExplained && isWhole
}

async function recordFirst(path: string): Promise<void> {
  let recording = options.hosts ? await recordHosts(40) : await recordSimulation(first, runMs)
  for (const seed of options['until-failure'] ? seeds.slice(1) : []) {
    if (recording.failure !== null || checkTrace(recording.trace) !== null) break
    recording = await recordSimulation(seed, runMs)
  }
  writeTrace(path, recording)
}

async function main(): Promise<boolean> {
  if (options.record !== undefined) {
    await recordFirst(options.record)
    return true
  }
  if (options.mutant === undefined) return await judgeAll()
  const names = options.mutant === 'all' ? Object.keys(mutants) : [options.mutant]
  let caught = 0
  for (const name of names) caught += (await isCaught(name)) ? 1 : 0
  console.log(`${caught} of ${names.length} mistakes caught`)
  return caught === names.length
}

process.exitCode = (await main()) ? 0 : 1

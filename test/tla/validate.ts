import { parseArgs } from 'node:util'
import { mutants, recordMutant } from './mutants.ts'
import { recordHosts, recordSimulation } from './record.ts'
import type { Recording } from './record.ts'
import { validate } from './tlc.ts'
import { readTrace, writeTrace } from './trace-file.ts'

// Holds recorded runs of the consensus core against FlotillaRaft.tla with TLC: docs/engine.md says how to read what it says.

const { values: options } = parseArgs({
  options: {
    /** tla2tools.jar */
    jar: { type: 'string' },
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    /** Of virtual time, a seed. */
    'run-ms': { type: 'string', default: '3000' },
    /** A longer run is judged up to here: TLC takes longer the longer the logs are. */
    'events-max': { type: 'string', default: '2000' },
    /** Three hosts over gRPC, in place of the simulation. */
    hosts: { type: 'boolean', default: false },
    /** Runs with a mistake made in the core, which must not be explained: a name, or `all`. */
    mutant: { type: 'string' },
    /** Writes the first seed's run to a file and judges nothing. */
    record: { type: 'string' },
    /** With --record: the first seed whose run ends early, or the last one. */
    'until-failure': { type: 'boolean', default: false },
    /** Judges a run from a file. */
    trace: { type: 'string' },
  },
})
const first = Number(options.first)
const seeds = Array.from({ length: Number(options.seeds) }, (_, at) => first + at)
const runMs = Number(options['run-ms'])
const eventsMax = Number(options['events-max'])

interface Judged {
  readonly isExplained: boolean
  readonly events: number
}

async function judge(name: string, recording: Recording): Promise<Judged> {
  const { jar } = options
  if (jar === undefined) throw new Error('--jar PATH to tla2tools.jar is needed')
  const { trace, failure } = recording
  const part = { ...trace, events: trace.events.slice(0, eventsMax) }
  const verdict = await validate(jar, part)
  const { events, states, seconds, broken, culprit, isExplained } = verdict
  const figures = `${events} events, ${states} states, ${seconds.toFixed(1)} s`
  const fault = broken === null ? 'is explained by no action' : `breaks ${broken}`
  console.log(
    culprit === null
      ? `${name}: ${figures}: ok`
      : `${name}: ${figures}: event ${culprit.number} ${fault}: ${JSON.stringify(culprit.event).slice(0, 600)}`,
  )
  if (failure !== null) console.log(`${name}: the run ended early: ${failure.message}`)
  return { isExplained: isExplained && failure === null, events }
}

async function judgeAll(): Promise<boolean> {
  if (options.trace !== undefined) {
    return (await judge(options.trace, readTrace(options.trace))).isExplained
  }
  if (options.hosts) return (await judge('hosts', await recordHosts(40))).isExplained
  let explained = 0
  let events = 0
  for (const seed of seeds) {
    const judged = await judge(`seed ${seed}`, await recordSimulation(seed, runMs))
    explained += judged.isExplained ? 1 : 0
    events += judged.events
  }
  console.log(`${explained} of ${seeds.length} runs explained, ${events} events`)
  return explained === seeds.length
}

/** A mistake shows only in a run that meets it: the first seed that the simulation's own checks object to is judged. */
async function isCaught(name: string): Promise<boolean> {
  const recording = await recordMutant(name, seeds, runMs)
  const { isExplained } = await judge(name, { ...recording, failure: null })
  return !isExplained
}

async function recordFirst(path: string): Promise<void> {
  let recording = options.hosts ? await recordHosts(40) : await recordSimulation(first, runMs)
  for (const seed of options['until-failure'] ? seeds.slice(1) : []) {
    if (recording.failure !== null) break
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

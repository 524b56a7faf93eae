import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { Reader } from '../src/fsm/reader.ts'
import { identity } from '../test/fsm/support/log.ts'
import { Network } from './access.ts'
import { scaleDrawing } from './support/scale-drawing.ts'
import { heading } from './support/report.ts'

// How does the cost of each thing that a controller does with its state grow with the network? One size a process, each without
// the network and the log, which cost the same at every size. `node --expose-gc bench/scale.ts [--most N] [--folder FOLDER]`: a
// table, and the curves as SVG in the folder.

const { values: options } = parseArgs({
  options: {
    most: { type: 'string', default: '1000000' },
    folder: { type: 'string', default: '.test/scale' },
    one: { type: 'string' },
  },
})
const SIZES = [1_000, 10_000, 100_000, 1_000_000]

/** Microseconds of processor time by name, but for the last two, which are bytes an identity and seconds. */
type Figures = Readonly<Record<string, number>>

/** On average over a fifth of a second: the kernel counts processor time by some milliseconds. */
function averaged(run: (turn: number) => void): number {
  const began = process.threadCpuUsage()
  const endMs = performance.now() + 200
  let turns = 0
  while (performance.now() < endMs) for (let at = 0; at < 20; at += 1) run(turns++)
  const { user, system } = process.threadCpuUsage(began)
  return (user + system) / turns
}

function measure(identities: number): Figures {
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const size = {
    identities,
    active: Math.min(1000, identities / 10),
    services: Math.min(100_000, identities / 10),
    policies: Math.min(10_000, Math.max(100, identities / 100)),
    edgeRouters: 100,
  }
  const began = performance.now()
  const network = new Network(size)
  const loadedMs = performance.now() - began
  const { log, reader, state } = network
  globalThis.gc?.()
  const heldBytes = process.memoryUsage().heapUsed - before
  const plain = new Reader(state, { nowMs: () => log.timeMs, monotonicMs: () => 0 })
  // What is compiled late, and caches that are filled once, are not what is asked for.
  for (let turn = 0; turn < 200; turn += 1) {
    plain.list('identity', { sort: 'name', limit: 100, offset: turn % 100 })
    reader.accessibleServices(network.identityId(turn), { limit: 100 })
  }
  let serial = 0
  return {
    'create of an identity': averaged(() => {
      serial += 1
      log.timeMs += 1
      log.create('identity', `new${serial}`, identity(`new${serial}`, ['d1', 'site1']))
    }),
    'read by id': averaged((turn) => void state.get('identity', `i${(turn * 31) % identities}`)),
    'list of 100, by name': averaged(
      (turn) => void plain.list('identity', { sort: 'name', limit: 100, offset: turn % 500 }),
    ),
    'list of 100, by a role': averaged(
      (turn) =>
        void plain.list('identity', {
          filter: `anyOf(roleAttributes) = "d${turn % 100}"`,
          limit: 100,
        }),
    ),
    'services of an identity': averaged(
      (turn) => void reader.accessibleServices(network.identityId(turn), { limit: 100 }),
    ),
    'change of the roles of an identity': averaged((turn) => {
      log.timeMs += 1
      log.patch('identity', network.identityId(turn * 7), {
        roleAttributes: [`d${(turn * 29) % 100}`, 'moved'],
      })
    }),
    'bytes an identity': heldBytes / identities,
    'seconds to load': loadedMs / 1000,
  }
}

if (options.one !== undefined) {
  console.log(JSON.stringify(measure(Number(options.one))))
} else {
  const sizes = SIZES.filter((size) => size <= Number(options.most))
  console.log(heading('cost by size of the network, in µs of processor time; one size a process'))
  const found = sizes.map((size) => {
    const flags = ['--expose-gc', '--max-old-space-size=16000']
    const text = execFileSync(
      process.execPath,
      [...flags, import.meta.filename, '--one', String(size)],
      { encoding: 'utf8', maxBuffer: 1024 * 1024 },
    )
    return JSON.parse(text) as Figures
  })
  const names = Object.keys(found[0] ?? {})
  const cell = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(0))
  console.log(['identities'.padEnd(36), ...sizes.map((size) => String(size).padStart(10))].join(''))
  for (const name of names) {
    const cells = found.map((figures) => cell(figures[name] ?? NaN).padStart(10))
    console.log([name.padEnd(36), ...cells].join(''))
  }
  const curves = names
    .filter((name) => !/^(bytes|seconds)/.test(name))
    .map((name) => ({ name, values: found.map((figures) => figures[name] ?? NaN) }))
  mkdirSync(options.folder, { recursive: true })
  const file = join(options.folder, 'cost-by-size.svg')
  writeFileSync(file, scaleDrawing({ sizes, curves, unit: 'µs' }))
  console.log(`drawn: ${file}`)
}

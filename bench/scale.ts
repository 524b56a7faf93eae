import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'

import { cheapestPaths } from '../src/fabric/circuits/path.ts'
import { LinkTable } from '../src/fabric/links/link-table.ts'
import { StateReader } from '../src/fsm/state-reader.ts'
import { seededRandom } from '../src/lib/random.ts'
import { identity } from '../test/fsm/support/log.ts'
import { Network } from './access.ts'
import { type Curve, writeCurves } from './support/scale-drawing.ts'
import { heading } from './support/report.ts'

// Measures how the cost of each operation on a controller's state grows with the number of
// identities, and of routers. Each size runs in a separate process, without the network and the
// log, whose costs are the same for every size. `node --expose-gc bench/scale.ts [--over
// identities|routers] [--most N] [--folder FOLDER]` prints a table for each, and writes the curves
// as SVG to the folder.

const { values: options } = parseArgs({
  options: {
    over: { type: 'string' },
    most: { type: 'string', default: '1000000' },
    folder: { type: 'string', default: '.test/scale' },
    one: { type: 'string' },
  },
})

/**
 * Measured values by name: processor time in µs, except the last two, which are bytes for each
 * identity and seconds.
 */
type Figures = Readonly<Record<string, number>>

/**
 * Average processor time over a fifth of a second, because the kernel counts processor time in
 * units of some milliseconds.
 */
function averaged(run: (turn: number) => void): number {
  const began = process.threadCpuUsage()
  const endMs = performance.now() + 200
  let turns = 0
  while (performance.now() < endMs) for (let at = 0; at < 20; at += 1) run(turns++)
  const { user, system } = process.threadCpuUsage(began)
  return (user + system) / turns
}

function measureIdentities(identities: number): Figures {
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
  const plain = new StateReader(state, { nowMs: () => log.timeMs, monotonicMs: () => 0 })
  // Warms up, so that compilation and filling caches are not measured.
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

/**
 * Number of links that each router dials. They lead only to routers that carry circuits between
 * others; one in ten routers does.
 */
const LINKS_EACH = 5
const PASSING_ONE_IN = 10
const IDENTITIES = 10_000

function linksAmong(routers: number): LinkTable {
  const random = seededRandom(1)
  const table = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: () => true,
    sendGone: () => undefined,
    onGone: () => undefined,
  })
  const sockets = { protocol: 'tls', dialAddress: '', iteration: 1, connections: [] }
  for (let at = 0; at < routers * LINKS_EACH; at += 1) {
    const from = at % routers
    const to = random.integer(0, routers / PASSING_ONE_IN - 1) * PASSING_ONE_IN
    table.report(`r${from}`, { id: `l${at}`, destRouterId: `r${to}`, ...sockets })
    table.change(`l${at}`, { staticCost: random.integer(1, 60) })
  }
  return table
}

function measureRouters(edgeRouters: number): Figures {
  const size = { identities: IDENTITIES, active: 1000, services: 1000, policies: 100, edgeRouters }
  const { log, state } = new Network(size)
  log.create('edgeRouterPolicy', 'erp', {
    name: 'erp',
    semantic: 'AnyOf',
    identityRoles: ['#d1'],
    edgeRouterRoles: ['#site1'],
  })
  const plain = new StateReader(state, { nowMs: () => log.timeMs, monotonicMs: () => 0 })
  const links = linksAmong(edgeRouters)
  const passing = new Set(
    Array.from({ length: edgeRouters / PASSING_ONE_IN }, (_, at) => `r${at * PASSING_ONE_IN}`),
  )
  const rules = { routerCost: () => 10, isEndOnly: (id: string) => !passing.has(id) }
  const routerId = (turn: number): string => `r${(turn * 7919) % edgeRouters}`
  let serial = 0
  return {
    'create of a router': averaged(() => {
      serial += 1
      log.timeMs += 1
      log.create('edgeRouter', `n${serial}`, { name: `n${serial}`, roleAttributes: ['site1'] })
    }),
    'list of 100, by name': averaged(
      (turn) =>
        void plain.list('edgeRouter', { sort: 'name', limit: 100, offset: turn % edgeRouters }),
    ),
    'routers of an identity, of which it has 1/7': averaged(() =>
      plain.routersOfIdentity('i1').has('r1'),
    ),
    'identities of a router': averaged((turn) => void plain.identitiesOfRouter(routerId(turn))),
    'change of the roles of a router': averaged((turn) => {
      log.timeMs += 1
      log.patch('edgeRouter', routerId(turn), { roleAttributes: [`site${turn % 7}`] })
    }),
    'path of a circuit between two routers': averaged((turn) => {
      const goal = new Set([routerId(turn * 31 + 7)])
      cheapestPaths(routerId(turn), goal, links, rules)
    }),
  }
}

/** Quantities that can grow, with the sizes to measure and the function that measures one size. */
const subjects = {
  identities: { sizes: [1_000, 10_000, 100_000, 1_000_000], measure: measureIdentities },
  routers: { sizes: [10, 100, 1_000, 10_000], measure: measureRouters },
}
type Subject = keyof typeof subjects

function figuresOf(over: Subject, size: number): Figures {
  const flags = ['--expose-gc', '--max-old-space-size=16000']
  const asked = ['--over', over, '--one', String(size)]
  const text = execFileSync(process.execPath, [...flags, import.meta.filename, ...asked], {
    encoding: 'utf8',
    maxBuffer: 1024 * 1024,
  })
  return JSON.parse(text) as Figures
}

const { over, one, most, folder } = options
if (over !== undefined && !Object.hasOwn(subjects, over)) {
  console.error(`--over must be one of ${Object.keys(subjects).join(', ')}`)
  process.exit(2)
}
const asked = over === undefined ? (Object.keys(subjects) as Subject[]) : [over as Subject]
if (one !== undefined && over !== undefined) {
  console.log(JSON.stringify(subjects[over as Subject].measure(Number(one))))
} else {
  console.log(heading('cost by size of the network, in µs of processor time; one size a process'))
  for (const subject of asked) {
    const sizes = subjects[subject].sizes.filter((size) => size <= Number(most))
    const found = sizes.map((size) => figuresOf(subject, size))
    const all = Object.keys(found[0] ?? {}).map((name) => ({
      name,
      values: found.map((figures) => figures[name] ?? NaN),
    }))
    const isOther = ({ name }: Curve): boolean => /^(bytes|seconds) /.test(name)
    const curves = all.filter((curve) => !isOther(curve))
    const drawn = { over: subject, sizes, curves, unit: 'µs' }
    writeCurves(folder, `cost-by-${subject}.svg`, drawn, all.filter(isOther))
  }
}

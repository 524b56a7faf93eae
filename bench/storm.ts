import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'

import { StockNetwork } from '../test/stock/network.ts'
import { processorMs, threadsMs, threadsMsSince } from './support/processor-time.ts'
import { heading, percentile } from './support/report.ts'
import { connectOnce, type StormNetwork, stormNetwork } from './support/storm-load.ts'
import { PeerNetwork, type Target } from './support/target.ts'

// Measures a connection storm: all clients return after an outage. Each client opens a new mutual
// TLS connection without a session ticket, logs in by certificate, lists its services and opens a
// service session. The report shows connects per second, their latency, and the processor time of
// all controllers, in total, by thread, and for the main thread of each controller. With `--serving
// N`, the clients use only the first N controllers; this separates the cost of serving clients from
// the cost of applying their entries. With `--peer BINARY`, the `ziti` program, it also measures
// OpenZiti's quickstart: one controller, which replicates nothing.

const { values: options } = parseArgs({
  options: {
    peer: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    devices: { type: 'string', default: '64' },
    clients: { type: 'string', default: '16,256' },
    services: { type: 'string', default: '20' },
    serving: { type: 'string', default: '3' },
  },
})
const seconds = Number(options.seconds)
interface Storm {
  readonly connects: number
  /** Number of requests that were refused because of the load and sent again. */
  readonly refusals: number
  readonly latencies: number[]
  readonly tookMs: number
  readonly processorMs: number
  readonly threads: ReadonlyMap<string, number>
  /** Processor time of the main thread of each controller. */
  readonly mainMs: readonly number[]
}

async function storm(target: Target, network: StormNetwork, clients: number): Promise<Storm> {
  const latencies: number[] = []
  const before = target.pids.map((pid) => ({ ms: processorMs(pid), threads: threadsMs(pid) }))
  const from = performance.now()
  const end = from + seconds * 1000
  let [next, refusals] = [0, 0]
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < end) {
        const begun = performance.now()
        refusals += await connectOnce(target, network, next++)
        latencies.push(performance.now() - begun)
      }
    }),
  )
  const threads = new Map<string, number>()
  const mainMs: number[] = []
  let spentMs = 0
  for (const [at, pid] of target.pids.entries()) {
    const { ms = 0, threads: earlier = new Map<string, number>() } = before[at] ?? {}
    spentMs += processorMs(pid) - ms
    const since = threadsMsSince(pid, earlier)
    mainMs.push(Math.max(...since.values()))
    for (const [name, took] of since) {
      threads.set(name, (threads.get(name) ?? 0) + took)
    }
  }
  return {
    connects: latencies.length,
    refusals,
    latencies,
    tookMs: performance.now() - from,
    processorMs: spentMs,
    threads,
    mainMs,
  }
}

const perSecond = ({ connects, tookMs }: Storm): number => (connects * 1000) / tookMs
const msEach = ({ connects, processorMs: ms }: Storm): number => ms / connects

function show(title: string, clients: number, run: Storm): void {
  const times = [...run.latencies]
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  console.log(
    `${title.padEnd(9)} ${String(clients).padStart(4)} clients: ${perSecond(run).toFixed(0)} connects/s, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${msEach(run).toFixed(2)} ms of processor time each, ${run.refusals} refusals`,
  )
  const threads = [...run.threads].sort(([, a], [, b]) => b - a).slice(0, 8)
  console.log(
    `          ${threads.map(([name, ms]) => `${name} ${(ms / run.connects).toFixed(2)}`).join(', ')}`,
  )
  const mains = run.mainMs.map((ms) => (ms / run.connects).toFixed(2))
  console.log(`          main thread of each controller: ${mains.join(', ')}`)
}

console.log(heading('Connection storm'))
console.log(`load of the machine before: ${(loadavg()[0] ?? 0).toFixed(1)}`)
await using ours = await ourNetwork()
await using peer = options.peer === undefined ? null : await PeerNetwork.start(options.peer)
const targets = [ours.target, ...(peer === null ? [] : [peer.target])]
const networks = new Map<Target, StormNetwork>()
for (const target of targets) {
  const counts = { services: Number(options.services), devices: Number(options.devices) }
  networks.set(target, await stormNetwork(target, counts))
}
for (const clients of options.clients.split(',').map(Number)) {
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [target, network] of networks) {
      show(target.title, clients, await storm(target, network, clients))
    }
  }
}

/** Starts three controllers and a router. */
async function ourNetwork(): Promise<AsyncDisposable & { readonly target: Target }> {
  const network = await StockNetwork.start(options.peer ?? '', [])
  await network.addOurRouter('gate')
  const { cluster } = network
  const { ca } = cluster.admin
  const controllers = cluster.admin.controllers.slice(0, Number(options.serving))
  const token = network.client(1).token ?? ''
  const pids = [1, 2, 3].map((k) => cluster.pid(k) ?? 0)
  const target = { title: 'ours', pids, controllers, ca, token, folder: cluster.folder }
  return { target, [Symbol.asyncDispose]: () => network[Symbol.asyncDispose]() }
}

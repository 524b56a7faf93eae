import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { processMemory } from '../test/chaos/process-memory.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { formatUuid, newUuidv7 } from '../src/lib/text/uuid.ts'
import { LeanClient } from './support/lean-client.ts'
import { load, type Run } from './support/load.ts'
import { threadsMs, threadsMsSince, untilIdle } from './support/processor-time.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures HTTPS writes and reads of a real cluster of three controllers on loopback, with clients
// on the same machine. The report shows below each rate the processor time of a request, as a sum
// over the controllers and for each controller and thread: on a shared machine, only this value is
// repeatable. With `--peer FILE` or FLOTILLA_STOCK_CONTROLLERS=FILE, the same run measures a
// running OpenZiti cluster with the same clients. The file is JSON: `controllers`, their URLs;
// `ca`, the path of the certificates that verify them; `headers`, for each a header line with the
// session of an administrator; `pids`, the process IDs of the controllers. The report ends with the
// goals and the measured values.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    peer: { type: 'string' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const peerFile = options.peer ?? process.env['FLOTILLA_STOCK_CONTROLLERS']
const FIRST_SECONDS = 5
const MANAGEMENT = '/edge/management/v1'

/** The controllers to measure, and how an administrator connects to them. */
interface Target {
  readonly title: string
  readonly controllers: readonly string[]
  readonly ca: string
  /** For each controller, a header line with the session of an administrator. */
  readonly headers: readonly string[]
  readonly pids: readonly number[]
  /** Index of the leader among the controllers; null if it is not known. */
  readonly leader: number | null
}

/** Measured values for one goal: medians over rounds, and the processor time of all controllers. */
interface Figure {
  readonly perSecond: number
  readonly p50: number
  readonly ms: number
}

let serial = 0

/** Reads the processor times of all controllers, for a later difference. */
const processorTimes = (target: Target): { pid: number; before: Map<string, number> }[] =>
  target.pids.map((pid) => ({ pid, before: threadsMs(pid) }))

function totalOf(threads: ReadonlyMap<string, number>): number {
  return [...threads.values()].reduce((sum, ms) => sum + ms, 0)
}

/**
 * Processor time since an earlier reading as `total (controller: thread ms, ...)`, without threads
 * that took less than a hundredth of the total.
 */
function processorTimeSince(
  target: Target,
  from: ReturnType<typeof processorTimes>,
  per: number,
): { readonly ms: number; readonly text: string } {
  const taken = from.map(({ pid, before }) => threadsMsSince(pid, before))
  const total = taken.reduce((sum, threads) => sum + totalOf(threads), 0)
  const parts = taken.map((threads, at) => {
    const role =
      target.leader === null ? 'controller' : at === target.leader ? 'leader' : 'follower'
    if (threads.size > 16) return `${role} ${(totalOf(threads) / per).toFixed(3)}`
    const shown = [...threads].filter(([, ms]) => ms > total / 100).sort(([, a], [, b]) => b - a)
    return `${role} ${shown.map(([name, ms]) => `${name} ${(ms / per).toFixed(3)}`).join(', ')}`
  })
  return { ms: total / per, text: `${(total / per).toFixed(3)} ms (${parts.join('; ')})` }
}

const connected = (
  target: Target,
  controllers: readonly number[],
  count: number,
): Promise<LeanClient[]> =>
  Promise.all(
    Array.from({ length: count }, (_, turn) => {
      const at = controllers[turn % controllers.length] ?? 0
      return LeanClient.connect(target.controllers[at] ?? '', target.ca, target.headers[at])
    }),
  )

interface Measure {
  readonly title: string
  /** Indexes of the controllers that receive the requests. */
  readonly at: readonly number[]
  readonly clients: number
  readonly send: (client: LeanClient) => Promise<number>
  /**
   * True: measures one load from its first request. False: measures several rounds after a short
   * load to warm up.
   */
  readonly isFirst?: boolean
}

async function measure(
  target: Target,
  { title, at, clients: count, send, isFirst = false }: Measure,
): Promise<Figure> {
  const clients = await connected(target, at, count)
  if (!isFirst) await load(clients.slice(0, 8), send, seconds)
  const runs: Run[] = []
  const from = processorTimes(target)
  for (let round = 0; round < (isFirst ? 1 : rounds); round += 1) {
    runs.push(await load(clients, send, isFirst ? FIRST_SECONDS : seconds))
  }
  const requests = runs.reduce((sum, run) => sum + run.requests, 0)
  const { ms, text } = processorTimeSince(target, from, requests)
  for (const client of clients) client.close()
  const [rates, p50s, p99s] = [
    runs.map((run) => run.perSecond),
    runs.map((run) => run.p50),
    runs.map((run) => run.p99),
  ]
  console.log(
    `${target.title}: ${title.padEnd(46)} ${spread(rates).padStart(24)} /s   p50 ${spread(p50s, 2)} ms   p99 ${spread(p99s, 1)} ms\n  processor time of a request: ${text}`,
  )
  return { perSecond: percentile(rates, 0.5), p50: percentile(p50s, 0.5), ms }
}

/** @returns processor time of idle controllers, ms per second and controller. */
async function measureIdle(target: Target, idleSeconds: number): Promise<number> {
  await untilIdle(target.pids)
  const from = processorTimes(target)
  await sleep(idleSeconds * 1000)
  const { ms, text } = processorTimeSince(target, from, idleSeconds)
  console.log(`${target.title}: idle, processor time of a second, all controllers: ${text}`)
  return ms / target.pids.length
}

const create = async (client: LeanClient): Promise<number> => {
  serial += 1
  const body = `{"name":"bench-${serial}","encryptionRequired":true,"roleAttributes":["a","b"]}`
  const id = `net-request-id: ${formatUuid(newUuidv7(Date.now()))}\r\n`
  return (await client.request('POST', `${MANAGEMENT}/services`, '', body, id)).status
}

const getting = (path: string) => async (client: LeanClient) =>
  (await client.request('GET', `${MANAGEMENT}${path}`, '')).status

/** Creates a service to read. @returns its ID. */
async function serviceOf(target: Target): Promise<string> {
  const client = (await connected(target, [0], 1))[0]
  const body = JSON.stringify({ name: `read-${Date.now()}`, encryptionRequired: true })
  const answer = await client?.request('POST', `${MANAGEMENT}/services`, '', body)
  client?.close()
  const { data } = JSON.parse(answer?.body ?? '{}') as { readonly data?: { readonly id: string } }
  if (data === undefined) throw new Error(`${target.title} made no service: ${answer?.body}`)
  return data.id
}

/** Measures the goals for one cluster. Quantities that need a new cluster are measured first. */
async function goalsOf(target: Target) {
  const all = target.controllers.map((_, at) => at)
  const one = [all.find((at) => at !== target.leader) ?? 0]
  const first = await measure(target, {
    title: `creates, 64 clients, first ${FIRST_SECONDS} s`,
    at: all,
    clients: 64,
    send: create,
    isFirst: true,
  })
  const warm = await measure(target, {
    title: 'creates, 64 clients',
    at: all,
    clients: 64,
    send: create,
  })
  const at = [target.leader ?? 0]
  const alone = await measure(target, { title: 'creates, 1 client', at, clients: 1, send: create })
  const read = getting(`/services/${await serviceOf(target)}`)
  const reads = await measure(target, {
    title: 'reads by id, 32 clients',
    at: one,
    clients: 32,
    send: read,
  })
  const list = getting('/services?limit=100')
  const lists = await measure(target, {
    title: 'lists of 100, 32 clients',
    at: one,
    clients: 32,
    send: list,
  })
  return { first, warm, alone, reads, lists }
}

type Goals = Awaited<ReturnType<typeof goalsOf>>

/**
 * Measures `node:https` alone with a response of 2,000 bytes: the minimum for any server that uses
 * it.
 */
async function bareReadMs(cluster: TestCluster): Promise<number> {
  const files = ['cert.pem', 'controller.key'].map((name) => join(cluster.folder, 'ctrl1', name))
  const server = fork(join(import.meta.dirname, 'support/bare-tls-server.ts'), files)
  const port = await new Promise<number>((resolve) => server.once('message', resolve))
  const controllers = [`https://127.0.0.1:${port}`]
  const pids = [server.pid ?? 0]
  const { ca } = cluster.admin
  const target = { title: 'node:https', controllers, ca, headers: [''], pids, leader: null }
  const { ms } = await measure(target, {
    title: 'answers alone, 32 clients',
    at: [0],
    clients: 32,
    send: async (client) => (await client.request('GET', '/', null)).status,
  })
  server.disconnect()
  return ms
}

const times = (a: number, b: number | undefined): string =>
  b === undefined ? '' : `, ${(a / b).toFixed(1)}x the peer`

function tell(ours: Goals, peer: Goals | null, others: readonly (readonly string[])[]): void {
  const rate = (name: keyof Goals): string =>
    `${Math.round(ours[name].perSecond)}/s, ${ours[name].ms.toFixed(3)} ms${times(ours[name].perSecond, peer?.[name].perSecond)}`
  const rows = [
    ['what', 'goal', 'reached'],
    ['creates, 64 clients', '12x the peer, 0.45 ms', rate('warm')],
    [`creates, first ${FIRST_SECONDS} s`, '6x the peer', rate('first')],
    [
      'create, 1 client, p50',
      '1.3 ms, a quarter of the peer',
      `${ours.alone.p50.toFixed(2)} ms${times(ours.alone.p50, peer?.alone.p50)}`,
    ],
    ['reads by id, 32 clients', '5x the peer, 0.045 ms', rate('reads')],
    ['lists of 100, 32 clients', '25x the peer, 0.35 ms', rate('lists')],
    ...others,
  ]
  const widths = [0, 1].map((at) => Math.max(...rows.map((row) => (row[at] ?? '').length)))
  for (const row of rows)
    console.log(row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '))
}

console.log(heading('HTTPS through a three-controller cluster; min / median / max over rounds'))
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const session = await cluster.loggedIn(1)
const leader = (await cluster.leader()) - 1
const ours: Target = {
  title: 'ours',
  controllers: admin.controllers,
  ca: admin.ca,
  headers: [1, 2, 3].map(() => `net-session: ${session.token}`),
  pids: [1, 2, 3].map((k) => cluster.pid(k) ?? 0),
  leader,
}
const peer: Target | null =
  peerFile === undefined
    ? null
    : {
        title: 'peer',
        leader: null,
        ...(JSON.parse(readFileSync(peerFile, 'utf8')) as Omit<Target, 'title' | 'leader'>),
      }

const memoryMiB = (): string =>
  spread(ours.pids.map((pid) => (processMemory(pid)?.rssKib ?? 0) / 1024))
const goals = await goalsOf(ours)
const followers = [0, 1, 2].filter((k) => k !== leader)
for (const [title, at, clients] of [
  ['creates, follower, 1 client', followers.slice(0, 1), 1],
  ['creates, leader, 64 clients', [leader], 64],
  ['creates, followers, 64 clients', followers, 64],
] as const) {
  await measure(ours, { title, at, clients, send: create })
}
const one = followers.slice(0, 1)
for (const [title, filter] of [
  ['list of 100, indexed filter, 1 client', 'anyOf(roleAttributes) = "a"'],
  ['list of 100, scan and sort, 1 client', 'name contains "h-1" sort by name'],
] as const) {
  const send = getting(`/services?limit=100&filter=${encodeURIComponent(filter)}`)
  await measure(ours, { title, at: one, clients: 1, send })
}
const bareMs = await bareReadMs(cluster)
const peerGoals = peer === null ? null : await goalsOf(peer)
const idleMs = await measureIdle(ours, 20)
const peerIdleMs = peer === null ? undefined : await measureIdle(peer, 20)
tell(goals, peerGoals, [
  ['a read beside node:https alone', '2x', `${(goals.reads.ms / bareMs).toFixed(1)}x`],
  ['idle', '12 ms/s a controller', `${idleMs.toFixed(1)} ms/s${times(idleMs, peerIdleMs)}`],
  ['memory after all of this', '130 MB when idle', `${memoryMiB()} MiB a controller`],
])

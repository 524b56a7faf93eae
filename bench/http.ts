import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import { formatUuid, newUuidv7 } from '../src/lib/text/uuid.ts'
import { LeanClient } from './support/lean-client.ts'
import { processorMs, threadsMs, threadsMsSince } from './support/processor-time.ts'
import { heading, percentile, spread } from './support/report.ts'

// HTTPS writes and reads of a real three-controller cluster on loopback, clients included on the same machine. Below each
// rate stands the processor time of a request, summed over the controllers and by controller and thread: on a shared
// machine that is the figure that repeats.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)

console.log(heading('HTTPS through a three-controller cluster; min / median / max over rounds'))
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const session = await cluster.loggedIn(1)
const token = session.token
const leader = (await cluster.leader()) - 1
let serial = 0

/** A reading of all controllers, to subtract later. */
const processorTimes = (): { pid: number; before: Map<string, number> }[] =>
  [1, 2, 3].map((k) => {
    const pid = cluster.pid(k) ?? 0
    return { pid, before: threadsMs(pid) }
  })

/** `total (controller: thread ms, ...)`, with threads below a hundredth of the total left out. */
function processorTimeSince(from: ReturnType<typeof processorTimes>, per: number): string {
  const taken = from.map(({ pid, before }) => threadsMsSince(pid, before))
  const total = taken.flatMap((threads) => [...threads.values()]).reduce((sum, ms) => sum + ms, 0)
  const parts = taken.map((threads, at) => {
    const shown = [...threads].filter(([, ms]) => ms > total / 100).sort(([, a], [, b]) => b - a)
    const role = at === leader ? 'leader' : 'follower'
    return `${role} ${shown.map(([name, ms]) => `${name} ${(ms / per).toFixed(3)}`).join(', ')}`
  })
  return `${(total / per).toFixed(3)} ms (${parts.join('; ')})`
}

async function load(
  clients: readonly LeanClient[],
  send: (client: LeanClient) => Promise<number>,
): Promise<{ perSecond: number; p50: number; p99: number; requests: number }> {
  const latencies: number[] = []
  const end = performance.now() + seconds * 1000
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < end) {
        const from = performance.now()
        const status = await send(client)
        if (status >= 300) throw new Error(`status ${status}`)
        latencies.push(performance.now() - from)
      }
    }),
  )
  return {
    perSecond: latencies.length / seconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    requests: latencies.length,
  }
}

async function measure(
  title: string,
  controllers: readonly number[],
  clientCount: number,
  send: (client: LeanClient) => Promise<number>,
): Promise<void> {
  const clients = await Promise.all(
    Array.from({ length: clientCount }, (_, at) =>
      LeanClient.connect(
        admin.controllers[controllers[at % controllers.length] ?? 0] ?? '',
        admin.ca,
      ),
    ),
  )
  await load(clients.slice(0, 8), send)
  const runs: Awaited<ReturnType<typeof load>>[] = []
  const from = processorTimes()
  for (let round = 0; round < rounds; round += 1) runs.push(await load(clients, send))
  const requests = runs.reduce((sum, run) => sum + run.requests, 0)
  const processorTime = processorTimeSince(from, requests)
  for (const client of clients) client.close()
  console.log(
    `${title.padEnd(46)} ${spread(runs.map((r) => r.perSecond)).padStart(24)} /s   p50 ${spread(
      runs.map((r) => r.p50),
      2,
    )} ms   p99 ${spread(
      runs.map((r) => r.p99),
      1,
    )} ms\n  processor time of a request: ${processorTime}`,
  )
}

const WINDOW_SECONDS = 5
const WINDOWS_MAX = 12

/** Of all controllers and threads. */
const totalMs = (): number =>
  [1, 2, 3].reduce((sum, k) => sum + processorMs(cluster.pid(k) ?? 0), 0)

/**
 * Processor time of idle controllers, once it falls no more: after a start the compilers work on,
 * and the collector takes up to half a minute to give the heap back.
 */
async function measureIdle(idleSeconds: number): Promise<void> {
  let last = Infinity
  for (let window = 0; window < WINDOWS_MAX; window += 1) {
    const before = totalMs()
    await sleep(WINDOW_SECONDS * 1000)
    const now = totalMs() - before
    if (now > last * 0.95) break
    last = now
  }
  const from = processorTimes()
  await sleep(idleSeconds * 1000)
  console.log(
    `idle, processor time of a second, three controllers: ${processorTimeSince(from, idleSeconds)}`,
  )
}

const create = async (client: LeanClient): Promise<number> => {
  serial += 1
  const body = `{"name":"bench-${serial}","encryptionRequired":true,"roleAttributes":["a","b"]}`
  const id = `net-request-id: ${formatUuid(newUuidv7(Date.now()))}\r\n`
  return (await client.request('POST', '/edge/management/v1/services', token, body, id)).status
}

const followers = [0, 1, 2].filter((k) => k !== leader)
await measureIdle(20)
await measure('write, leader, 1 client', [leader], 1, create)
await measure('write, follower, 1 client', followers.slice(0, 1), 1, create)
await measure('write, leader, 64 clients', [leader], 64, create)
await measure('write, all three, 64 clients', [0, 1, 2], 64, create)
await measure('write, followers, 64 clients', followers, 64, create)

const made = await session.request('POST', '/edge/management/v1/services', {
  body: { name: 'read-me', encryptionRequired: true },
})
const { id } = made.body.data as { id: string }
const path = `/edge/management/v1/services/${id}`
const read = async (client: LeanClient): Promise<number> =>
  (await client.request('GET', path, token)).status
await measure('read by id, one controller, 1 client', [followers[0] ?? 0], 1, read)
await measure('read by id, one controller, 64 clients', [followers[0] ?? 0], 64, read)
const list = (filter: string) => async (client: LeanClient) => {
  const query = `limit=100&filter=${encodeURIComponent(filter)}`
  return (await client.request('GET', `/edge/management/v1/services?${query}`, token)).status
}
const one = [followers[0] ?? 0]
await measure('list of 100, indexed filter, 1 client', one, 1, list('anyOf(roleAttributes) = "a"'))
await measure(
  'list of 100, scan and sort, 1 client',
  one,
  1,
  list('name contains "h-1" sort by name'),
)

import { parseArgs } from 'node:util'
import {
  type Client,
  allServices,
  createService,
  pause,
  until,
} from '../test/process/support/client.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { heading, percentile, spread } from './support/report.ts'

// Kills the leader with kill -9 again and again while clients write. Measures the time until the
// next acknowledged write, and checks that every acknowledged write exists exactly once. Two thirds
// of the clients send a request ID and retry at another controller.

const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    clients: { type: 'string', default: '32' },
  },
})

/**
 * A response within this time may belong to a write that was in progress when the leader died, so
 * it does not count as the next acknowledged write.
 */
const longestInFlightMs = 150

console.log(heading(`Failover gap: kill -9 of the leader under ${options.clients} writing clients`))
await using cluster = await TestCluster.start({ hasCalmElections: false })
const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
const fates = new Map<string, 'acknowledged' | 'unknown'>()
const acknowledgedAt: number[] = []
let isOver = false
const writers = Array.from({ length: Number(options.clients) }, async (_, worker) => {
  for (let n = 0; !isOver; n += 1) {
    const name = `w-${worker}-${n}`
    const fate = await createService(clients, worker + n, name, { hasRequestId: worker % 3 !== 0 })
    fates.set(name, fate)
    if (fate === 'acknowledged') acknowledgedAt.push(performance.now())
  }
})

const gaps: number[] = []
const offlineAfter: number[] = []
const onlineAfter: number[] = []
for (let kill = 0; kill < Number(options.kills); kill += 1) {
  const before = fates.size
  await until('writes flow', () => Promise.resolve(fates.size > before + 50), 60_000)
  const leader = await cluster.leader()
  const killedAt = performance.now()
  cluster.kill(leader)
  const survivors = [1, 2, 3].filter((k) => k !== leader)
  const seenOffline = survivors.map((k) =>
    seen(k, leader, false).then(() => performance.now() - killedAt),
  )
  const gap = await until(
    'the next acknowledged write',
    () => {
      const next = acknowledgedAt.find((at) => at > killedAt + longestInFlightMs)
      return Promise.resolve(next === undefined ? null : next - killedAt)
    },
    60_000,
  )
  gaps.push(gap)
  offlineAfter.push(...(await Promise.all(seenOffline)))
  const restartedAt = performance.now()
  cluster.run(leader)
  onlineAfter.push(
    ...(await Promise.all(
      survivors.map((k) => seen(k, leader, true).then(() => performance.now() - restartedAt)),
    )),
  )
  console.log(`kill ${kill + 1}: ctrl${leader}, gap ${gap.toFixed(0)} ms`)
}
isOver = true
await Promise.all(writers)

console.log(
  `gap                    ${spread(gaps)} ms, p99 ${percentile([...gaps], 0.99).toFixed(0)} ms`,
)
console.log(`shown offline after    ${spread(offlineAfter)} ms`)
console.log(`shown online after     ${spread(onlineAfter)} ms (start of the process included)`)

const unknown = [...fates.values()].filter((fate) => fate === 'unknown').length
let faults = 0
for (const k of [1, 2, 3]) {
  const names = [...(await allServices(await cluster.loggedIn(k))).values()]
  const there = new Set(names)
  const lost = [...fates].filter(
    ([name, fate]) => fate === 'acknowledged' && !there.has(name),
  ).length
  const twice = names.length - there.size
  console.log(
    `ctrl${k}: ${names.length} services, ${lost} acknowledged and lost, ${twice} twice, ${unknown} OUTCOME_UNKNOWN`,
  )
  faults += lost + twice
}
process.exitCode = faults === 0 ? 0 : 1

async function seen(k: number, whom: number, isOnline: boolean): Promise<void> {
  const client: Client | undefined = clients[k - 1]
  for (;;) {
    const answer = await client
      ?.request('GET', '/edge/client/v1/controllers')
      .catch(() => undefined)
    const rows = (answer?.body.data ?? []) as { name: string; isOnline: boolean }[]
    if (rows.find((row) => row.name === `ctrl${whom}`)?.isOnline === isOnline) return
    await pause(50)
  }
}

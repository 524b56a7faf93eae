import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seededRandom } from '../../src/lib/random.ts'
import { allServices, createService, pause, until } from '../process/support/client.ts'
import type { WriteFate } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { RecordedLoad, report } from './recorded-load.ts'

// Real controllers under writing clients: any one, two or all three of them are killed (-9) or frozen (SIGSTOP) at moments
// drawn by chance, and come back. The log keeps so little that most of those who return need a snapshot. At the end nothing
// acknowledged may be missing, nothing may stand twice, and all three must hold the same state; and what some of the clients
// wrote and read must be linearizable. When it is not, the folder of the cluster stays, with the history in it.

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
    clients: { type: 'string', default: '24' },
    recorded: { type: 'string', default: '12' },
  },
})
const random = seededRandom(Number(options.seed))
const nodes = [1, 2, 3] as const
/** A machine with much else to do takes half a minute to start three controllers. */
const BACK_WITHIN_MS = 120_000
console.log(
  `chaos for ${options.minutes} minutes; the schedule is drawn with --seed ${options.seed}`,
)

await using cluster = await TestCluster.start({
  hasCalmElections: false,
  env: { FLOTILLA_LOG_RETAIN_ENTRIES: '500', FLOTILLA_LOG_RETAIN_BYTES: '131072' },
})
const clients = await Promise.all(nodes.map((k) => cluster.loggedIn(k)))
const fates = new Map<string, WriteFate>()
let isOver = false

/** One third sends no request id, and may come to not know. */
async function write(worker: number): Promise<void> {
  for (let n = 0; !isOver; n += 1) {
    const name = `w-${worker}-${n}`
    fates.set(
      name,
      await createService(clients, worker + n, name, { hasRequestId: worker % 3 !== 0 }),
    )
  }
}

/** Kills or freezes some controllers, and lets them come back a little later. */
async function strike(): Promise<string> {
  const struck = nodes.filter(() => random.next() < 0.5)
  if (struck.length === 0) struck.push(nodes[random.integer(0, 2)] ?? 1)
  const frozen = struck.filter(() => random.next() < 0.3)
  for (const k of struck) {
    cluster.kill(k, frozen.includes(k) ? 'SIGSTOP' : 'SIGKILL')
    await pause(random.integer(0, 300))
  }
  await pause(random.integer(0, 2500))
  for (const k of struck) {
    if (frozen.includes(k)) cluster.kill(k, 'SIGCONT')
    else cluster.run(k)
  }
  for (const k of nodes) {
    const answers = async (): Promise<boolean> => {
      const answer = await clients[k - 1]?.request('GET', '/health-checks', { timeoutMs: 2000 })
      return answer?.status === 200
    }
    await until(`ctrl${k} answers`, answers, BACK_WITHIN_MS)
  }
  return struck.map((k) => `ctrl${k} ${frozen.includes(k) ? 'frozen' : 'killed'}`).join(', ')
}

const recorded = await RecordedLoad.start(clients, {
  workers: Number(options.recorded),
  seed: Number(options.seed),
})
const writers = Array.from({ length: Number(options.clients) }, (_, worker) => write(worker))
const failed = Promise.all(writers)
// Told at the end; until then a writer that fails must not end the process.
failed.catch(() => undefined)
const end = performance.now() + Number(options.minutes) * 60_000
for (let round = 1; performance.now() < end; round += 1) {
  await pause(random.integer(500, 2500))
  console.log(`${round}: ${await strike()}; ${fates.size} writes, ${recorded.size} recorded`)
  recorded.throwFailure()
}
await until('writes flow again', () => {
  const before = fates.size
  return pause(200).then(() => fates.size > before)
})
isOver = true
await failed
await recorded.end()

// Those are judged by their history.
const isRecorded = (name: string): boolean => /^(register|element|claim)-/.test(name)
let faults = 0
for (const k of nodes) {
  const all = [...(await allServices(await cluster.loggedIn(k))).values()]
  const names = all.filter((name) => !isRecorded(name))
  const there = new Set(names)
  const lost = [...fates].filter(
    ([name, fate]) => fate === 'acknowledged' && !there.has(name),
  ).length
  const foreign = names.filter((name) => !fates.has(name)).length
  const twice = names.length - there.size
  faults += lost + foreign + twice
  console.log(
    `ctrl${k}: ${names.length} services; ${lost} lost, ${twice} twice, ${foreign} nobody asked for`,
  )
}
const unknown = [...fates.values()].filter((fate) => fate === 'unknown').length
await until('one digest at one index', async () => {
  const statuses = await Promise.all(nodes.map((k) => cluster.status(k)))
  const own = statuses.map((members, at) => members.find(({ id }) => id === `ctrl${at + 1}`))
  return new Set(own.map((member) => `${member?.digestIndex} ${member?.digest}`)).size === 1
})
console.log(
  `${fates.size} writes, ${unknown} OUTCOME_UNKNOWN; the states are equal; ${faults} faults`,
)
const isLinearizable = report(recorded.judged())
if (!isLinearizable) {
  process.env['FLOTILLA_KEEP'] = '1'
  writeFileSync(join(cluster.dir, 'history.json'), JSON.stringify(recorded.operations()))
  console.log(`data and history are kept in ${cluster.dir}`)
}
process.exitCode = faults === 0 && isLinearizable ? 0 : 1

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seededRandom } from '../../src/lib/random.ts'
import { allServices, pause, until } from '../process/support/client.ts'
import { expectMembers, Fleet } from '../process/support/fleet.ts'
import { ChaosClients } from './chaos-clients.ts'
import { unpackRelease } from '../upgrade/releases.ts'
import { ClusterEvents } from './cluster-events.ts'
import { RecordedLoad, report } from './recorded-load.ts'

// Runs real controllers with writing clients. Some or all controllers are killed (-9) or frozen
// (SIGSTOP) at random moments, and return. In the meantime, members join, leave and are replaced,
// leadership is transferred, and backups are restored. With --from VERSION, the cluster starts with
// that release, whose package is stored with the tests, and is upgraded during the faults. The log
// keeps so few entries that most returning members need a snapshot. At the end, no acknowledged
// write may be missing or doubled, all members must have the same state, and the operations of some
// clients must be linearizable. Otherwise the folders of the cluster stay, with the recorded
// history.

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
    clients: { type: 'string', default: '24' },
    recorded: { type: 'string', default: '12' },
    from: { type: 'string' },
  },
})
const random = seededRandom(Number(options.seed))
const CONTROLLERS_MAX = 5
console.log(
  `chaos for ${options.minutes} minutes; the schedule is drawn with --seed ${options.seed}`,
)

await using fleet = await Fleet.create(CONTROLLERS_MAX, {
  hasCalmElections: false,
  env: { FLOTILLA_LOG_RETAIN_ENTRIES: '500', FLOTILLA_LOG_RETAIN_BYTES: '131072' },
})
if (options.from !== undefined) {
  const former = unpackRelease(options.from, fleet.dir)
  for (const k of [1, 2, 3]) fleet.programs.set(k, former)
}
await fleet.init()
await fleet.join(2, 1)
await fleet.join(3, 2)
await expectMembers(fleet, [1, 2, 3])
const clients = new ChaosClients(fleet)
for (const k of [1, 2, 3]) await clients.add(k)
const events = new ClusterEvents(fleet, clients, random)

/** Actions, each with its relative frequency. */
const acts: readonly (readonly [number, () => Promise<string>])[] = [
  [8, () => events.strike()],
  [2, () => events.join()],
  [2, () => events.leave()],
  [1, () => events.replace()],
  [1, () => events.transfer()],
  [1, () => events.restore(recorded)],
]
const weights = acts.reduce((sum, [weight]) => sum + weight, 0)

async function act(): Promise<string> {
  let left = random.integer(1, weights)
  for (const [weight, one] of acts) {
    left -= weight
    if (left <= 0) return await one()
  }
  return 'nothing'
}

const recorded = await RecordedLoad.start(clients.pool, {
  workers: Number(options.recorded),
  seed: Number(options.seed),
})
clients.start(Number(options.clients))
const end = performance.now() + Number(options.minutes) * 60_000
if (options.from !== undefined) {
  for (const before of [await events.strike(), await events.strike(), await events.upgrade()]) {
    console.log(`${options.from}: ${before}; ${clients.fates.size} writes`)
  }
  clients.throwFailure()
}
for (let round = 1; performance.now() < end; round += 1) {
  await pause(random.integer(500, 2500))
  const done = await act()
  console.log(`${round}: ${done}; ${clients.fates.size} writes, ${recorded.size} recorded`)
  recorded.throwFailure()
  clients.throwFailure()
}
await until('writes flow again', () => {
  const before = clients.fates.size
  return pause(200).then(() => clients.fates.size > before)
})
await clients.end()
await recorded.end()

// Whether the record belongs to a client whose operations are checked.
const isRecorded = (name: string): boolean => /^(register|element|claim)-/.test(name)
const { fates } = clients
let faults = 0
for (const k of events.members) {
  const all = [...(await allServices(await fleet.loggedIn(k))).values()]
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
  const statuses = await Promise.all([...events.members].map((k) => fleet.status(k)))
  const own = statuses.map((members, at) =>
    members.find(({ id }) => id === `ctrl${[...events.members][at]}`),
  )
  return new Set(own.map((member) => `${member?.digestIndex} ${member?.digest}`)).size === 1
})
console.log(
  `${fates.size} writes, ${unknown} OUTCOME_UNKNOWN; the states are equal; ${faults} faults`,
)
const isLinearizable = report(recorded.judged())
if (!isLinearizable) {
  process.env['FLOTILLA_KEEP'] = '1'
  writeFileSync(join(fleet.dir, 'history.json'), JSON.stringify(recorded.operations()))
  console.log(`data and history are kept in ${fleet.dir}`)
}
process.exitCode = faults === 0 && isLinearizable ? 0 : 1

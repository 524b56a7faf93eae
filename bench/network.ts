import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import { until } from '../test/process/support/client.ts'
import { processMemory } from '../test/chaos/process-memory.ts'
import { LeanClient } from './support/lean-client.ts'
import { NetworkLoad, type NetworkSize } from './support/network-load.ts'
import { heading, percentile } from './support/report.ts'

// Measures a network of the maximum size on three real controllers, which the program loads through
// their API: the cost of loading, storing, reading and changing it, with few and with many
// identities, and the growth of each value.

const help = `usage: node bench/network.ts [options]

  --identities N  how many identities in the end (100000)
  --few N         how many at first (1000)
  --services N    services (10000)
  --policies N    service policies, as many edge router policies and service edge router policies together (1000)
  --routers N     edge routers (1000)
  --help          this`

const { values } = parseArgs({
  options: {
    identities: { type: 'string', default: '100000' },
    few: { type: 'string', default: '1000' },
    services: { type: 'string', default: '10000' },
    policies: { type: 'string', default: '1000' },
    routers: { type: 'string', default: '1000' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(help)
  process.exit(0)
}
const size: NetworkSize = {
  services: Number(values.services),
  policies: Number(values.policies),
  routers: Number(values.routers),
}
const [few, many] = [Number(values.few), Number(values.identities)]
const MANAGEMENT = '/edge/management/v1'
const CLIENT = '/edge/client/v1'
const KIB_A_MIB = 1024

/** Measured values by name; the unit is ms, MiB, or a rate. */
type Figures = Map<string, number>

console.log(heading('a network of full size behind three controllers; clients on the same machine'))
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const session = await cluster.loggedIn(1)
const token = session.token ?? ''
const follower = ((await cluster.followers())[0] ?? 1) - 1
const connect = (): Promise<LeanClient> =>
  LeanClient.connect(admin.controllers[follower] ?? '', admin.ca)
let client = await connect()
const load = new NetworkLoad(admin.controllers, admin.ca, token)

async function timed(times: number, run: (turn: number) => Promise<unknown>): Promise<number[]> {
  const tookMs: number[] = []
  for (let turn = 0; turn < times; turn += 1) {
    const from = performance.now()
    await run(turn)
    tookMs.push(performance.now() - from)
  }
  return tookMs
}

async function get(path: string, ownToken = token): Promise<string> {
  const answer = await client.request('GET', path, ownToken)
  if (answer.status !== 200)
    throw new Error(`${path}: ${answer.status} ${answer.body.slice(0, 300)}`)
  return answer.body
}

async function send(method: string, path: string, body: string): Promise<string> {
  const answer = await client.request(method, path, token, body)
  if (answer.status >= 300)
    throw new Error(`${path}: ${answer.status} ${answer.body.slice(0, 300)}`)
  return answer.body
}

function note(figures: Figures, name: string, tookMs: number[]): void {
  const [p50, p99] = [percentile(tookMs, 0.5), percentile(tookMs, 0.99)]
  figures.set(`${name}, p50 ms`, p50)
  figures.set(`${name}, p99 ms`, p99)
}

/** Filters that consoles and scripts send, from the cheapest to the most expensive. */
const filters: readonly (readonly [string, string])[] = [
  ['filter: name = "..."', 'name = "identity-500"'],
  ['filter: anyOf(roleAttributes) = "..."', 'anyOf(roleAttributes) = "group-7"'],
  ['filter: name prefix, sorted', 'name >= "identity-5" and name < "identity-6" sort by name'],
  ['filter: icontains', 'name icontains "TITY-77"'],
  ['filter: tags and or', 'tags.site = "s3" or (isAdmin = true and not name contains "x")'],
]

async function measure(figures: Figures): Promise<void> {
  // Connects again, because the controller may have closed the connection, which was idle while the
  // identities were loaded.
  client.close()
  client = await connect()
  for (const [name, filter] of filters) {
    const path = `${MANAGEMENT}/identities?limit=100&filter=${encodeURIComponent(filter)}`
    note(figures, name, await timed(100, () => get(path)))
  }
  const id = load.identityIds[load.identityIds.length >> 1] ?? ''
  note(figures, 'read by id', await timed(500, () => get(`${MANAGEMENT}/identities/${id}`)))
  await measureClient(figures)
  const serviceId = load.serviceIds[0] ?? ''
  note(
    figures,
    'role attributes of an identity',
    await timed(100, (turn) =>
      send('PATCH', `${MANAGEMENT}/identities/${id}`, `{"roleAttributes":["group-${turn % 50}"]}`),
    ),
  )
  note(
    figures,
    'role attributes of a service',
    await timed(100, (turn) =>
      send(
        'PATCH',
        `${MANAGEMENT}/services/${serviceId}`,
        `{"roleAttributes":["kind-${turn % 50}"]}`,
      ),
    ),
  )
  note(figures, 'a policy that touches everything', await timed(10, touchEverything))
}

async function touchEverything(turn: number): Promise<void> {
  const body = `{"name":"everything-${turn}","type":"Dial","semantic":"AnyOf","identityRoles":["#all"],"serviceRoles":["#all"]}`
  const made = JSON.parse(await send('POST', `${MANAGEMENT}/service-policies`, body)) as {
    data: { id: string }
  }
  await send('DELETE', `${MANAGEMENT}/service-policies/${made.data.id}`, '')
}

/** Measures how one client lists its services: first after a log-in, then again. */
async function measureClient(figures: Figures): Promise<void> {
  const path = `${CLIENT}/services?limit=500&configTypes=all`
  const firstMs: number[] = []
  const againMs: number[] = []
  for (let turn = 0; turn < 20; turn += 1) {
    const own = await load.logIn(client, turn)
    firstMs.push(...(await timed(1, () => get(path, own))))
    againMs.push(...(await timed(10, () => get(path, own))))
  }
  note(figures, 'services of a client, first', firstMs)
  note(figures, 'services of a client, again', againMs)
}

function memory(figures: Figures): void {
  for (let k = 1; k <= cluster.nodes; k += 1) {
    const pid = cluster.pid(k)
    const seen = pid === null ? null : processMemory(pid)
    if (seen !== null) figures.set(`memory of ctrl${k}, MiB`, seen.rssKib / KIB_A_MIB)
  }
}

/** Measures the time from the start of a process to its first response that reflects all writes. */
async function restart(figures: Figures): Promise<void> {
  const k = follower + 1
  const index = cluster.status(k).then((members) => Math.max(...members.map((one) => one.applied)))
  const min = await index
  cluster.kill(k, 'SIGTERM')
  await until('it has ended', () => Promise.resolve(cluster.pid(k) === null && 'ended'), 60_000)
  const from = performance.now()
  cluster.run(k)
  await until(
    'it has everything again',
    async () => {
      const members = await cluster.status(k).catch(() => [])
      return members.some(({ id, applied }) => id === cluster.id(k) && applied >= min) && 'there'
    },
    120_000,
  )
  figures.set('start of a controller, ms', performance.now() - from)
}

async function grow(identities: number): Promise<Figures> {
  const figures: Figures = new Map()
  const made = await load.identities(identities, (done, perSecond) => {
    process.stderr.write(`\r${done} identities, ${Math.round(perSecond)}/s `)
  })
  process.stderr.write('\n')
  figures.set('load of identities, /s', made)
  await measure(figures)
  memory(figures)
  return figures
}

const rest = await load.rest(size, (what, perSecond) => {
  console.log(`${what.padEnd(48)} ${Math.round(perSecond).toString().padStart(8)} /s`)
})
console.log(
  `loaded ${rest} records beside the identities; ca of ${readFileSync(admin.ca).length} bytes`,
)
const small = await grow(few)
const large = await grow(many)
client.close()
await restart(large)

console.log(
  heading(`${few} identities, ${many} identities, and the exponent of the growth between`),
)
for (const [name, value] of large) {
  const before = small.get(name)
  const exponent =
    before === undefined ? '' : (Math.log(value / before) / Math.log(many / few)).toFixed(2)
  const text = (figure: number | undefined): string => (figure?.toFixed(2) ?? '').padStart(12)
  console.log(`${name.padEnd(48)}${text(before)}${text(value)}${exponent.padStart(8)}`)
}

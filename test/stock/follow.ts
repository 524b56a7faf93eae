import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { Client } from '../process/support/client.ts'
import { Fleet, fleetAdmin } from '../process/support/fleet.ts'
import { OurRouter } from './our-router.ts'
import { seen, StockRouter } from './stock-router.ts'

// A router follows the changes of its cluster: a controller is added, the controller at which the
// router enrolled is removed, the leader is killed, every controller moves to another address, and
// the router starts with only its stored files. After each step every controller shows it as
// online, and its endpoints file names exactly the current members. `node test/stock/follow.ts`
// tests our router, with `--binary PATH` an OpenZiti router.

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary !== undefined && !existsSync(binary)) {
  console.log(`skipped: ${binary} is not there, so there is nothing to try`)
  process.exit(0)
}
await using fleet = await Fleet.create(4)
/** The ports of controller k: for its API, for routers and for the mesh. */
const ports = new Map<number, Ports>()
interface Ports {
  readonly api: number
  readonly router: number
  readonly mesh: number
}
for (const k of [1, 2, 3, 4]) ports.set(k, placeOf(fleet.port + k - 1))
function placeOf(api: number): Ports {
  return { api, router: api + 100, mesh: api + 200 }
}
const addressOf = (k: number): string => `tls:127.0.0.1:${ports.get(k)?.router ?? 0}`

await fleet.init()
await fleet.join(2, 1)
await fleet.join(3, 1)
let members = [1, 2, 3]
const first = await client(1)
const made = await first.request('POST', '/edge/management/v1/edge-routers', {
  body: { name: 'follower' },
})
const { id } = made.body.data as { id: string }
const { enrollmentJwt } = await shownBy(first)
const router = makeRouter()
await router.enroll(String(enrollmentJwt))
router.start()
try {
  await follows('it has enrolled')
  await fleet.join(4, 1)
  members = [1, 2, 3, 4]
  await follows('a fourth controller has joined')
  await fleet.change(2, 'remove', 'ctrl1')
  await fleet.stop(1)
  members = [2, 3, 4]
  await follows('the one that it enrolled at is removed')

  const leader = await fleet.leader(2)
  await fleet.stop(leader, 'SIGKILL')
  const left = members.filter((k) => k !== leader)
  await seen('another leader', async () => (await fleet.leader(left[0] ?? 0)) !== leader)
  await follows(`ctrl${leader}, which led, is killed`, left)
  fleet.run(leader)
  await follows(`ctrl${leader} is back`)

  for (const k of members) {
    await fleet.stop(k)
    move(k, 300)
    fleet.run(k)
    await follows(`ctrl${k} has moved`)
  }
  await router.kill()
  for (const k of members) await fleet.stop(k)
  for (const k of members) fleet.run(k)
  router.start()
  await follows('all was started cold, with no configured controller left')
  console.log('all seen')
} catch (error) {
  console.log(readFileSync(router.log, 'utf8').split('\n').slice(-30).join('\n'))
  throw error
} finally {
  await router.kill()
}

function makeRouter(): OurRouter | StockRouter {
  const [endpoint, folder] = [addressOf(1), join(fleet.dir, 'follower')]
  const linkPort = fleet.port + 50
  if (binary === undefined) return new OurRouter({ folder, endpoint, linkPort })
  const edgePort = linkPort + 1
  return new StockRouter({ binary, folder, name: 'follower', endpoint, linkPort, edgePort })
}

/**
 * Expects each controller in `running` to show the router as online, and the endpoints file to name
 * exactly the members.
 */
async function follows(when: string, running: readonly number[] = members): Promise<void> {
  console.log(when)
  for (const k of running) {
    await seen(
      `online on ctrl${k}`,
      async () => (await shownBy(await client(k)))['isOnline'] === true,
    )
  }
  for (const k of running) await seen(`a channel to ctrl${k}`, async () => await hasChannel(k))
  const wanted = members.map(addressOf).sort().join()
  await seen('the endpoints file names exactly the members', () => {
    if (addressesIn(join(fleet.dir, 'follower', 'endpoints.yml')) === wanted) return true
    throw new Error(`${addressesIn(join(fleet.dir, 'follower', 'endpoints.yml'))} is not ${wanted}`)
  })
}

/**
 * Whether the router has a channel to controller k: a controller inspects only routers with a
 * channel to it.
 */
async function hasChannel(k: number): Promise<boolean> {
  const { body } = await (
    await client(k)
  ).request('POST', '/fabric/v1/inspections', {
    body: { appRegex: '.*', requestedValues: ['router-data-model-index', 'router-controllers'] },
  })
  const { values } = body as unknown as { values: { appId: string }[] }
  return values.some(({ appId }) => appId === id)
}

/** Addresses of all controllers in the file, in the format of any release. */
function addressesIn(path: string): string {
  if (!existsSync(path)) return ''
  const found = readFileSync(path, 'utf8').match(/tls:[0-9.]+:[0-9]+/g) ?? []
  return [...new Set(found)].sort().join()
}

async function client(k: number): Promise<Client> {
  const url = `https://127.0.0.1:${ports.get(k)?.api ?? 0}`
  const asked = new Client(url, join(fleet.folder(k), 'ca.pem'))
  const { status } = await asked.logIn({ ...fleetAdmin, controllers: [], ca: '' })
  if (status !== 200) throw new Error(`log-in at ctrl${k}: ${status}`)
  return asked
}

async function shownBy(asked: Client): Promise<Readonly<Record<string, unknown>>> {
  const { body } = await asked.request('GET', `/edge/management/v1/edge-routers/${id}`)
  return body.data as Readonly<Record<string, unknown>>
}

function move(k: number, by: number): void {
  const before = ports.get(k)
  if (before === undefined) return
  const after = placeOf(before.api + by)
  let text = readFileSync(fleet.config(k), 'utf8')
  for (const name of ['api', 'router', 'mesh'] as const) {
    text = text.replaceAll(`:${before[name]}`, `:${after[name]}`)
  }
  writeFileSync(fleet.config(k), text)
  ports.set(k, after)
}

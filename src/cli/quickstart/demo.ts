import { Agent, createServer, get, type Server } from 'node:http'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { ADMIN_FILE_NAME } from '../bootstrap/admin-file.ts'
import { ApiClient, type ApiClientOptions } from '../client/api-client.ts'
import { formatTable, printLine } from '../terminal/output.ts'
import { LOOPBACK, readQuickstartPlan, type RouterPlan } from './plan.ts'
import { administratorClientOptions, DEMO_SERVICE } from './routers.ts'
import { startListening, listeningPort } from '../../lib/runtime/listening.ts'

const ONLINE_MS_MAX = 30_000
const ANSWER_MS_MAX = 5_000
const POLL_MS = 250
const PAGE_BYTES_MAX = 64 * 1024
/**
 * Tag on records that the demo created. The demo does not change a user's records with the same
 * names.
 */
const MADE_BY = 'flotilla demo'
/**
 * Tag on the demo's service; its value is the id of the router whose `isTunnelerEnabled` the demo
 * has set.
 */
const TUNNEL_TAG = 'enabledTunnelOf'

type Row = Readonly<Record<string, unknown>>

/**
 * `demo` fetches a web page of this host through the routers of a quickstart. It creates a service,
 * a terminator at the last router and the policies, fetches the page through the first router,
 * prints the path of the circuit, and removes everything it created.
 * @throws {CommandFailure}
 */
export async function runDemo(options: {
  readonly dir: string
  readonly keep: boolean
}): Promise<void> {
  const routers = routersOf(options.dir)
  const admin = new DemoRecords(await administratorClientOptions(options.dir))
  const page = await servePage()
  const agent = new Agent({ keepAlive: true })
  try {
    const [entry, host] = await bothOnline(admin, routers)
    await admin.make(entry.id, host.id, `tcp:${LOOPBACK}:${listeningPort(page)}`)
    const url = `http://${LOOPBACK}:${entry.plan.entryPort}/`
    printLine(await fetched(url, agent))
    printLine(await admin.circuits())
    if (options.keep) await untilStopped(url)
  } finally {
    agent.destroy()
    page.close()
    page.closeAllConnections()
    await admin.remove()
  }
}

function routersOf(dir: string): readonly RouterPlan[] {
  if (!existsSync(join(dir, ADMIN_FILE_NAME))) {
    const remedy = "run 'make quickstart' or 'flotilla quickstart --routers 2' first, or pass --dir"
    throw new CommandFailure(EXIT_FAILED, `${dir} holds no cluster; ${remedy}`)
  }
  const { routers } = readQuickstartPlan(dir)
  if (routers.length === 0) {
    const remedy = 'stop the quickstart and run it with --routers 2'
    throw new CommandFailure(EXIT_FAILED, `${dir} has no routers; ${remedy}`)
  }
  return routers
}

interface OnlineRouter {
  readonly id: string
  readonly plan: RouterPlan
}

/**
 * The first and the last router of the quickstart, once all of its routers are online. They may be
 * the same router.
 */
async function bothOnline(
  admin: DemoRecords,
  plans: readonly RouterPlan[],
): Promise<readonly [OnlineRouter, OnlineRouter]> {
  const endMs = performance.now() + ONLINE_MS_MAX
  for (;;) {
    const rows = await admin.onlineRouters()
    const online = plans.flatMap((plan) => {
      const row = rows.find(({ name }) => name === plan.id)
      return row === undefined ? [] : [{ id: String(row['id']), plan }]
    })
    const [first, last] = [online[0], online.at(-1)]
    if (first !== undefined && last !== undefined && online.length === plans.length) {
      return [first, last]
    }
    if (performance.now() > endMs) {
      const away = plans.filter(({ id }) => !online.some(({ plan }) => plan.id === id))
      const logs = away.map(({ id, logPath }) => `${id} is not connected; its log is ${logPath}`)
      throw new CommandFailure(EXIT_FAILED, logs.join('\n'))
    }
    await pause()
  }
}

/** The records that the demo creates: a service and the records that refer to it. */
class DemoRecords {
  readonly #options: ApiClientOptions
  readonly #client: ApiClient

  constructor(options: ApiClientOptions) {
    this.#options = options
    this.#client = new ApiClient(options)
  }

  async onlineRouters(): Promise<readonly Row[]> {
    const rows = await this.#list('edge-routers', 'true limit 100')
    return rows.filter((row) => row['isVerified'] === true && row['isOnline'] === true)
  }

  async make(entryId: string, hostId: string, address: string): Promise<void> {
    await this.remove()
    const hadTunnel = await this.#hasTunnel(entryId)
    // Stored on the service, so that the next run can restore the router's setting if this run is
    // killed.
    const tags = hadTunnel ? {} : { [TUNNEL_TAG]: entryId }
    const named = { name: DEMO_SERVICE, encryptionRequired: false }
    const service = await this.#create('services', named, tags)
    const only = { semantic: 'AnyOf', serviceRoles: [`@${service}`] }
    // The first router needs its tunnel, because it dials the service as its own identity.
    if (!hadTunnel) await this.#setTunnel(entryId, true)
    await this.#create('service-policies', {
      ...only,
      name: DEMO_SERVICE,
      type: 'Dial',
      identityRoles: [`@${entryId}`],
    })
    await this.#create('service-edge-router-policies', {
      ...only,
      name: DEMO_SERVICE,
      edgeRouterRoles: ['#all'],
    })
    await this.#create('terminators', {
      service,
      router: hostId,
      binding: 'transport',
      address,
    })
  }

  /** Deletes the service with its policies and terminators, and restores the router's setting. */
  async remove(): Promise<void> {
    const kinds = ['service-policies', 'service-edge-router-policies', 'services']
    for (const kind of kinds) {
      for (const { id, tags } of await this.#list(kind, `name = "${DEMO_SERVICE}"`)) {
        const made = (tags ?? {}) as Row
        if (made['madeBy'] !== MADE_BY) continue
        const routerId = made[TUNNEL_TAG]
        if (typeof routerId === 'string') await this.#setTunnel(routerId, false)
        await this.#client.ask({ method: 'DELETE', path: `/${kind}/${String(id)}` })
      }
    }
  }

  /** A table of the open circuits. Each controller lists only the circuits that it created. */
  async circuits(): Promise<string> {
    const lists = this.#options.controllers.map(async (controller) => {
      const client = new ApiClient({ ...this.#options, controllers: [controller] })
      return (await client.ask({ method: 'GET', api: '/fabric/v1', path: '/circuits' })).data
    })
    const rows = ((await Promise.all(lists)) as (readonly Row[])[]).flat().map((row) => {
      const { nodes = [] } = (row['path'] ?? {}) as { readonly nodes?: readonly Row[] }
      const service = (row['service'] ?? {}) as Row
      const path = nodes.map(({ name }) => String(name)).join(' > ')
      return [String(row['id']), String(service['name'] ?? ''), path]
    })
    return formatTable(['circuit', 'service', 'path'], rows)
  }

  async #hasTunnel(routerId: string): Promise<boolean> {
    const { data } = await this.#client.ask({ method: 'GET', path: `/edge-routers/${routerId}` })
    return (data as Row)['isTunnelerEnabled'] === true
  }

  /** Sets `isTunnelerEnabled`; does nothing for a deleted router. */
  async #setTunnel(routerId: string, isTunnelerEnabled: boolean): Promise<void> {
    const rows = await this.#list('edge-routers', `id = "${routerId}"`)
    if (rows.length === 0) return
    const path = `/edge-routers/${routerId}`
    await this.#client.ask({ method: 'PATCH', path, body: { isTunnelerEnabled } })
  }

  async #list(kind: string, filter: string): Promise<readonly Row[]> {
    const path = `/${kind}?filter=${encodeURIComponent(filter)}`
    return (await this.#client.ask({ method: 'GET', path })).data as readonly Row[]
  }

  async #create(kind: string, body: Row, tags: Row = {}): Promise<string> {
    const tagged = { ...body, tags: { ...tags, madeBy: MADE_BY } }
    const { data } = await this.#client.ask({ method: 'POST', path: `/${kind}`, body: tagged })
    return String((data as Row)['id'])
  }
}

async function servePage(): Promise<Server> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/plain')
    response.end(
      `This page is served on ${LOOPBACK}:${listeningPort(server)} and came through the overlay.\n`,
    )
  })
  await startListening(server, { port: 0, host: LOOPBACK })
  return server
}

/**
 * Fetches the page with retries, because it takes a moment until the routers know the terminator
 * and have opened a link.
 */
async function fetched(url: string, agent: Agent): Promise<string> {
  const endMs = performance.now() + ONLINE_MS_MAX
  for (;;) {
    try {
      return `${url}\n${await fetchOnce(url, agent)}`
    } catch (error) {
      if (performance.now() > endMs) {
        throw new CommandFailure(EXIT_FAILED, `${url}: ${errorMessage(error)}`, error)
      }
      await pause()
    }
  }
}

async function fetchOnce(url: string, agent: Agent): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const request = get(url, { agent, timeout: ANSWER_MS_MAX }, (response) => {
    let page = ''
    response.setEncoding('utf8')
    response.on('data', (text: string) => {
      page += text
      if (page.length > PAGE_BYTES_MAX) request.destroy(new Error('the page is too long'))
    })
    response.on('end', () => resolve(page))
    response.on('error', reject)
  })
  request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_MS_MAX} ms`)))
  request.on('error', reject)
  return await promise
}

async function untilStopped(url: string): Promise<void> {
  printLine(`the service stays until ^C: curl ${url}`)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS))
}

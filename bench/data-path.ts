import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

import { type Client, until } from '../test/process/support/client.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { OurRouter } from '../test/stock/our-router.ts'
import { StockRouter } from '../test/stock/stock-router.ts'
import { freePort } from '../test/support/ports.ts'
import { endAndShow, profiledTo } from './support/cpu-profile.ts'
import { processorMs } from './support/processor-time.ts'
import { heading, percentile } from './support/report.ts'

// Measures the cost of a stream through routers. A client connects to a `proxy` listener, and a
// `transport` terminator dials a server in this process: through one router, and through two
// routers with a link. `node bench/data-path.ts [--stock BINARY] [--megabytes N] [--rounds N]
// [--circuits N] [--profile]`. With --stock or FLOTILLA_STOCK_ROUTER, the same run also measures
// OpenZiti routers with the same controller and client, alternating with Flotilla routers, so that
// other load on the machine affects both equally. The report shows the median of the rounds. The
// rate of circuits includes the work of the controller, which is the same for both; the processor
// time is only that of the routers. With --profile, the report only shows where two Flotilla
// routers spend their time while circuits are created.

const argument = (name: string): string | null => {
  const at = process.argv.indexOf(name)
  return at < 0 ? null : (process.argv[at + 1] ?? null)
}
const stock = argument('--stock') ?? process.env['FLOTILLA_STOCK_ROUTER'] ?? null
const MEGABYTES = Number(argument('--megabytes') ?? 128)
const ROUNDS = Number(argument('--rounds') ?? 3)
const MB = 1024 * 1024
const CIRCUITS = 100
const ROUND_TRIPS = 1000
const CREATED = Number(argument('--circuits') ?? 300)
const IDLE = 500
const STALL_MS = 30_000
const isProfiled = process.argv.includes('--profile')
/** Action of the server on a connection, selected by the connection's first byte. */
const [SINK, ECHO] = ['s', 'e']

interface RouterUnderTest {
  readonly id: string
  readonly entryPort: number
  readonly pid: number
  kill(): Promise<void>
}

interface Figures {
  readonly oneMbPerS: number
  readonly manyMbPerS: number
  readonly cpuMsPerGb: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly createdPerS: number
  readonly createdCpuMs: number
  readonly circuitKb: number
}

type Kind = 'ours' | 'stock'

/**
 * Quantities in the order of the report, each with the goal for Flotilla relative to an OpenZiti
 * router.
 */
const report: readonly {
  readonly name: string
  readonly of: keyof Figures
  readonly unit: string
  readonly digits: number
  readonly goal?: { readonly text: string; readonly holds: (ratio: number) => boolean }
}[] = [
  {
    name: 'throughput of one circuit',
    of: 'oneMbPerS',
    unit: 'MB/s',
    digits: 0,
    goal: { text: '>= 0.7', holds: (ratio) => ratio >= 0.7 },
  },
  { name: `throughput of ${CIRCUITS} circuits`, of: 'manyMbPerS', unit: 'MB/s', digits: 0 },
  { name: 'processor time a gigabyte', of: 'cpuMsPerGb', unit: 'ms', digits: 0 },
  { name: 'round trip of 1 KB, p50', of: 'p50Ms', unit: 'ms', digits: 2 },
  {
    name: 'round trip of 1 KB, p99',
    of: 'p99Ms',
    unit: 'ms',
    digits: 2,
    goal: { text: '<= 2', holds: (ratio) => ratio <= 2 },
  },
  {
    name: 'circuits created, by 8 at a time',
    of: 'createdPerS',
    unit: '/s',
    digits: 0,
    goal: { text: '>= 3', holds: (ratio) => ratio >= 3 },
  },
  { name: 'processor time a circuit created', of: 'createdCpuMs', unit: 'ms', digits: 2 },
  { name: 'memory a circuit', of: 'circuitKb', unit: 'KB', digits: 1 },
]

const cluster = await TestCluster.start({ nodes: 1 })
const client = await cluster.loggedIn(1)
const routers: RouterUnderTest[] = []
const servers: Server[] = []
const profiles = join(cluster.folder, 'profiles')
try {
  if (isProfiled) await showProfile()
  else await compare()
} finally {
  await Promise.all(routers.map((router) => router.kill()))
  for (const server of servers) server.close()
  await cluster[Symbol.asyncDispose]()
}

/** Shows where two routers spend their time while circuits through their link are created. */
async function showProfile(): Promise<void> {
  const server = await serve(onConnection)
  const [entry, exit] = await pairOf('ours')
  await hostAt('ours1', exit, portOf(server))
  await warmed(entry)
  await create(() => connect({ port: entry.entryPort, host: '127.0.0.1', noDelay: true }))
  for (const [title, { pid }] of Object.entries({ entry, exit })) {
    console.log(heading(`the ${title} router`))
    await endAndShow(pid, profiles, { operations: CREATED, operation: 'a circuit', rows: 40 })
  }
}

async function compare(): Promise<void> {
  const kinds: readonly Kind[] = stock === null ? ['ours'] : ['ours', 'stock']
  const server = await serve(onConnection)
  const pairs = new Map<Kind, readonly [RouterUnderTest, RouterUnderTest]>()
  for (const kind of kinds) {
    pairs.set(kind, await pairOf(kind))
  }
  for (const count of [1, 2] as const) {
    const found = new Map<Kind, Figures[]>(kinds.map((kind) => [kind, []]))
    for (const [kind, [first, second]] of pairs) {
      await hostAt(`${kind}1`, count === 1 ? first : second, portOf(server))
      await warmed(first)
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [kind, [first, second]] of pairs) {
        found.get(kind)?.push(await measure(count === 1 ? [first] : [first, second], first))
      }
    }
    print(count === 1 ? 'one router' : 'two routers and a link', found)
  }
}

/** Starts two routers and waits until both are online. */
async function pairOf(kind: Kind): Promise<readonly [RouterUnderTest, RouterUnderTest]> {
  const pair = [await addRouter(kind, `${kind}1`), await addRouter(kind, `${kind}2`)] as const
  routers.push(...pair)
  await until('both are online', async () => {
    const shown = await Promise.all(pair.map(({ id }) => detail(`edge-routers/${id}`)))
    return shown.every((one) => one['isOnline'] === true)
  })
  return pair
}

function print(title: string, found: ReadonlyMap<Kind, readonly Figures[]>): void {
  console.log(heading(title))
  for (const { name, of, unit, digits, goal } of report) {
    const [ours, theirs] = (['ours', 'stock'] as const).map((kind) => {
      const rounds = (found.get(kind) ?? []).map((figures) => figures[of])
      // Memory per circuit comes from the first round only, because in later rounds a process
      // reuses memory.
      return (of === 'circuitKb' ? rounds[0] : percentile(rounds, 0.5)) ?? NaN
    })
    const shown = (value = NaN): string => `${value.toFixed(digits)} ${unit}`.padStart(12)
    const beside = Number.isNaN(theirs ?? NaN) ? '' : comparison(ours ?? NaN, theirs ?? NaN, goal)
    console.log(`${name.padEnd(34)} ${shown(ours)}${beside === '' ? '' : shown(theirs)}${beside}`)
  }
}

function comparison(ours: number, theirs: number, goal: (typeof report)[number]['goal']): string {
  const ratio = ours / theirs
  const judged =
    goal === undefined ? '' : `  goal ${goal.text}: ${goal.holds(ratio) ? 'met' : 'MISSED'}`
  return `  ratio ${ratio.toFixed(2)}${judged}`
}

async function measure(
  under: readonly RouterUnderTest[],
  entry: RouterUnderTest,
): Promise<Figures> {
  const connectTo = (): Socket =>
    connect({ port: entry.entryPort, host: '127.0.0.1', noDelay: true })
  const cpuBefore = processorMsOf(under)
  const oneMs = await send(connectTo, MEGABYTES * MB)
  const cpuMs = processorMsOf(under) - cpuBefore
  const share = Math.ceil(MEGABYTES / CIRCUITS) * MB
  const began = performance.now()
  await Promise.all(Array.from({ length: CIRCUITS }, () => send(connectTo, share)))
  const manyMs = performance.now() - began
  const times = await roundTrips(await opened(connectTo()))
  const cpuBeforeCreated = processorMsOf(under)
  const createdMs = await create(connectTo)
  const createdCpuMs = (processorMsOf(under) - cpuBeforeCreated) / CREATED
  const before = residentKb(under)
  const open: Socket[] = []
  while (open.length < IDLE) {
    const some = Array.from({ length: 20 }, () => opened(connectTo()))
    open.push(...(await Promise.all(some)))
  }
  const circuitKb = (residentKb(under) - before) / IDLE
  for (const socket of open) socket.destroy()
  return {
    oneMbPerS: (MEGABYTES / oneMs) * 1000,
    manyMbPerS: ((share * CIRCUITS) / MB / manyMs) * 1000,
    cpuMsPerGb: (cpuMs / MEGABYTES) * 1024,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    createdPerS: (CREATED / createdMs) * 1000,
    createdCpuMs,
    circuitKb,
  }
}

/** Waits until circuits work, then transfers some megabytes, so that the code is compiled. */
async function warmed({ entryPort }: RouterUnderTest): Promise<void> {
  const connectTo = (): Socket => connect({ port: entryPort, host: '127.0.0.1', noDelay: true })
  await until('a circuit', async () => {
    const socket = connectTo()
    socket.on('error', () => undefined)
    socket.write(`${ECHO}x`)
    return await new Promise<boolean>((done) => {
      socket.once('data', () => done(true))
      socket.once('close', () => done(false))
    }).finally(() => socket.destroy())
  })
  await send(connectTo, 16 * MB)
}

/**
 * Handles a connection. If it sends a length in eight bytes and then this number of bytes, it gets
 * their digest; if it requests an echo, it gets back everything that it sends.
 */
function onConnection(socket: Socket): void {
  socket.once('data', (first: Buffer) => {
    const rest = first.subarray(1)
    if (first.toString('latin1', 0, 1) === ECHO) {
      if (rest.length > 0) socket.write(rest)
      socket.pipe(socket)
    } else digest(socket, rest)
  })
}

function digest(socket: Socket, first: Buffer): void {
  const hash = createHash('sha256')
  let head: Buffer | null = first
  let left = NaN
  const take = (chunk: Buffer): void => {
    let body = chunk
    if (head !== null) {
      head = head === chunk ? chunk : Buffer.concat([head, chunk])
      if (head.length < 8) return
      left = Number(head.readBigUInt64BE())
      body = head.subarray(8)
      head = null
    }
    hash.update(body)
    left -= body.length
    if (left === 0) socket.end(hash.digest())
  }
  take(first)
  socket.on('data', take)
}

/** Sends bytes through a circuit. @returns ms until the digest of all bytes has arrived. */
async function send(connectTo: () => Socket, bytes: number): Promise<number> {
  const socket = connectTo()
  socket.setTimeout(STALL_MS, () => socket.destroy(new Error('a circuit has stalled')))
  const chunk = Buffer.alloc(64 * 1024, 7)
  const hash = createHash('sha256')
  for (let sent = 0; sent < bytes; sent += chunk.length) hash.update(chunk)
  const wanted = hash.digest()
  const answer = once(socket, 'data')
  const began = performance.now()
  const head = Buffer.alloc(9, SINK)
  head.writeBigUInt64BE(BigInt(bytes), 1)
  socket.write(head)
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    if (!socket.write(chunk)) await once(socket, 'drain')
  }
  const [found] = (await answer) as [Buffer]
  if (!found.equals(wanted)) throw new Error(`${bytes} bytes did not arrive as they were sent`)
  const ms = performance.now() - began
  socket.destroy()
  return ms
}

async function roundTrips(socket: Socket): Promise<number[]> {
  const times: number[] = []
  const message = Buffer.alloc(1024, 1)
  for (let round = 0; round < ROUND_TRIPS; round += 1) {
    const began = performance.now()
    socket.write(message)
    for (let left = message.length; left > 0;) {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      left -= chunk.length
    }
    if (round >= ROUND_TRIPS / 10) times.push(performance.now() - began)
  }
  socket.destroy()
  return times
}

/**
 * Creates many circuits, eight at a time. They stay open until the last one exists: otherwise a
 * kernel may drop a connection request from a port that was closed shortly before, and the client
 * repeats it only after a second.
 * @returns ms for all circuits.
 */
async function create(connectTo: () => Socket): Promise<number> {
  const began = performance.now()
  const open: Socket[] = []
  let left = CREATED
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      open.push(await opened(connectTo()))
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  const ms = performance.now() - began
  for (const socket of open) socket.destroy()
  return ms
}

/** Waits until a circuit works: until a byte has come back. */
async function opened(socket: Socket): Promise<Socket> {
  socket.write(`${ECHO}x`)
  await once(socket, 'data')
  return socket
}

async function serve(onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    onConnection(socket)
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** Creates a service with one terminator at that router. */
async function hostAt(service: string, { id }: RouterUnderTest, port: number): Promise<void> {
  const services = (await detail(
    `services?filter=${encodeURIComponent(`name = "${service}"`)}`,
  )) as unknown as readonly { id: string }[]
  for (const found of services) await manage('DELETE', `services/${found.id}`)
  const serviceId = await post('services', { name: service, encryptionRequired: false })
  const only = { semantic: 'AnyOf', serviceRoles: [`@${serviceId}`] }
  const suffix = `${service}-${id}-${port}`
  await post('service-policies', { ...only, name: suffix, type: 'Dial', identityRoles: ['#all'] })
  await post('service-edge-router-policies', { ...only, name: suffix, edgeRouterRoles: ['#all'] })
  const address = `tcp:127.0.0.1:${port}`
  await post('terminators', { service: serviceId, router: id, binding: 'transport', address })
}

async function addRouter(kind: 'ours' | 'stock', name: string): Promise<RouterUnderTest> {
  const id = await post('edge-routers', { name, isTunnelerEnabled: true })
  const jwt = String((await detail(`edge-routers/${id}`))['enrollmentJwt'])
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as {
    readonly ctrls: readonly string[]
  }
  const [linkPort, entryPort, edgePort] = [await freePort(), await freePort(), await freePort()]
  const at = `tcp:127.0.0.1:${entryPort}`
  const service = `${kind}1`
  const entry = `{binding: proxy, address: "${at}", advertise: "${at}", service: ${service}}`
  const common = { folder: join(cluster.folder, name), endpoint: claims.ctrls[0] ?? '', linkPort }
  const dialers = 'dialers: [{binding: transport}]'
  const router =
    kind === 'ours'
      ? new OurRouter({
          ...common,
          ...(isProfiled ? { env: { ...process.env, ...profiledTo(profiles) } } : {}),
          sections: [`listeners: [${entry}]`, dialers],
        })
      : new StockRouter({
          ...common,
          binary: stock ?? '',
          name,
          edgePort,
          listeners: [entry],
          sections: [dialers],
        })
  await router.enroll(jwt)
  router.start()
  return {
    id,
    entryPort,
    get pid() {
      return router.pid
    },
    kill: () => router.kill(),
  }
}

function processorMsOf(under: readonly RouterUnderTest[]): number {
  return under.reduce((sum, { pid }) => sum + processorMs(pid), 0)
}

function residentKb(under: readonly RouterUnderTest[]): number {
  return under.reduce((sum, { pid }) => {
    const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return sum + Number(kb)
  }, 0)
}

async function post(path: string, body: object): Promise<string> {
  return String((await manage('POST', path, body))['id'])
}

async function detail(path: string): Promise<Readonly<Record<string, unknown>>> {
  return await manage('GET', path)
}

async function manage(
  method: string,
  path: string,
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const asked: Client = client
  const answer = await asked.request(
    method,
    `/edge/management/v1/${path}`,
    body === undefined ? {} : { body },
  )
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return (answer.body.data ?? {}) as Readonly<Record<string, unknown>>
}

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
import { processorMs } from './support/processor-time.ts'
import { heading, percentile } from './support/report.ts'

// What do routers take to carry a stream? A client connects to a `proxy` listener, a `transport` terminator dials a server
// here: through one router, and through two with a link. `node bench/data-path.ts [--stock BINARY] [--megabytes N]`; with
// --stock, routers of the public family are measured in the same run, under the same controllers, by the same client.

const argument = (name: string): string | null => {
  const at = process.argv.indexOf(name)
  return at < 0 ? null : (process.argv[at + 1] ?? null)
}
const stock = argument('--stock')
const MEGABYTES = Number(argument('--megabytes') ?? 256)
const MB = 1024 * 1024
const CIRCUITS = 100
const ROUND_TRIPS = 2000
const CREATED = 300
const IDLE = 500

interface RouterUnderTest {
  readonly id: string
  readonly entryPort: number
  readonly pid: number
  kill(): Promise<void>
}

const cluster = await TestCluster.start({ nodes: 1 })
const client = await cluster.loggedIn(1)
const routers: RouterUnderTest[] = []
const servers: Server[] = []
try {
  for (const kind of stock === null ? (['ours'] as const) : (['ours', 'stock'] as const)) {
    const first = await addRouter(kind, `${kind}1`)
    const second = await addRouter(kind, `${kind}2`)
    routers.push(first, second)
    await until('both are online', async () => {
      const shown = await Promise.all([first, second].map(({ id }) => detail(`edge-routers/${id}`)))
      return shown.every((one) => one['isOnline'] === true)
    })
    await measure(`${kind}: one router`, [first], first, first, `${kind}1`)
    await measure(`${kind}: two routers and a link`, [first, second], first, second, `${kind}1`)
    await Promise.all([first.kill(), second.kill()])
  }
} finally {
  await Promise.all(routers.map((router) => router.kill()))
  for (const server of servers) server.close()
  await cluster[Symbol.asyncDispose]()
}

async function measure(
  title: string,
  under: readonly RouterUnderTest[],
  entry: RouterUnderTest,
  host: RouterUnderTest,
  service: string,
): Promise<void> {
  const sink = await serve((socket) => {
    const hash = createHash('sha256')
    socket.on('data', (chunk) => hash.update(chunk))
    socket.on('end', () => socket.end(hash.digest()))
  })
  const echo = await serve((socket) => socket.pipe(socket))
  const connectTo = (): Socket =>
    connect({ port: entry.entryPort, host: '127.0.0.1', noDelay: true })
  console.log(heading(title))

  await hostAt(service, host, portOf(sink))
  await send(connectTo, 4 * MB)
  const cpuBefore = processorMsOf(under)
  const oneMs = await send(connectTo, MEGABYTES * MB)
  const cpuMs = processorMsOf(under) - cpuBefore
  print('throughput of one circuit', `${((MEGABYTES / oneMs) * 1000).toFixed(0)} MB/s`)
  print('processor time a gigabyte', `${((cpuMs / MEGABYTES) * 1024).toFixed(0)} ms`)
  const began = performance.now()
  const share = Math.ceil(MEGABYTES / CIRCUITS) * MB
  await Promise.all(Array.from({ length: CIRCUITS }, () => send(connectTo, share)))
  const many = ((share * CIRCUITS) / MB / (performance.now() - began)) * 1000
  print(`throughput of ${CIRCUITS} circuits`, `${many.toFixed(0)} MB/s`)

  await hostAt(service, host, portOf(echo))
  const times = await roundTrips(connectTo())
  print(
    'round trip of 1 KB',
    `p50 ${percentile(times, 0.5).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(2)} ms`,
  )
  const createdMs = await create(connectTo)
  print(
    'circuits created, one after the other by 8',
    `${((CREATED / createdMs) * 1000).toFixed(0)}/s`,
  )
  const before = residentKb(under)
  const open: Socket[] = []
  while (open.length < IDLE) {
    const some = Array.from({ length: 20 }, () => opened(connectTo()))
    open.push(...(await Promise.all(some)))
  }
  print('memory a circuit', `${((residentKb(under) - before) / IDLE).toFixed(1)} KB`)
  for (const socket of open) socket.destroy()
}

/** @returns ms until the digest of all bytes has come back. */
async function send(connectTo: () => Socket, bytes: number): Promise<number> {
  const socket = connectTo()
  const chunk = Buffer.alloc(64 * 1024, 7)
  const hash = createHash('sha256')
  const answer = collected(socket)
  const began = performance.now()
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    hash.update(chunk)
    if (!socket.write(chunk)) await once(socket, 'drain')
  }
  socket.end()
  const digest = await answer
  if (!digest.equals(hash.digest()))
    throw new Error(`${bytes} bytes did not arrive as they were sent`)
  return performance.now() - began
}

async function collected(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
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

/** @returns ms for all. */
async function create(connectTo: () => Socket): Promise<number> {
  const began = performance.now()
  let left = CREATED
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      ;(await opened(connectTo())).destroy()
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  return performance.now() - began
}

/** A circuit is there when a byte has come back. */
async function opened(socket: Socket): Promise<Socket> {
  socket.write('x')
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

/** The service has one terminator, at that router. */
async function hostAt(service: string, { id }: RouterUnderTest, port: number): Promise<void> {
  const services = (await detail(
    `services?filter=${encodeURIComponent(`name = "${service}"`)}`,
  )) as unknown as readonly { id: string }[]
  for (const found of services) await manage('DELETE', `services/${found.id}`)
  const serviceId = await post('services', { name: service, encryptionRequired: false })
  const only = { semantic: 'AnyOf', serviceRoles: [`@${serviceId}`] }
  const suffix = `${service}-${port}`
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

function print(name: string, figure: string): void {
  console.log(`${name.padEnd(44)} ${figure}`)
}

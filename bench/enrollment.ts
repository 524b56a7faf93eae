import { fork } from 'node:child_process'
import { createPublicKey, randomBytes, sign, verify } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import tls from 'node:tls'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../src/pki/authority/certificate-request.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { processorMs } from './support/processor-time.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures enrollments and certificate log-ins per second, with three controllers and their clients
// on one machine. Each is compared with its minimum: for an enrollment, one signature check and one
// signature in a separate process; for a log-in, a mutual TLS handshake with a plain HTTPS server
// that has the certificate and settings of a controller. Also measures the latency of writes at the
// same time.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    devices: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '3' },
    clients: { type: 'string', default: '16' },
  },
})
const rounds = Number(options.rounds)
const devicesPerRound = Number(options.devices)
const seconds = Number(options.seconds)
const clientCount = Number(options.clients)
const MANAGEMENT = '/edge/management/v1'
const CLIENT = '/edge/client/v1'

interface Device {
  readonly privateKeyPem: string
  readonly csr: string
  token: string
  context: tls.SecureContext | null
}

console.log(
  heading(
    `Enrollments and certificate log-ins, three controllers, ${clientCount} clients; min / median / max over rounds`,
  ),
)
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const ca = readFileSync(admin.ca)
const urls = admin.controllers
const pids = urls.map((_, at) => cluster.pid(at + 1) ?? 0)
const session = await cluster.loggedIn(1)
const leader = (await cluster.leader()) - 1

/** The keys of a few devices, each used many times, so that generating keys is not measured. */
const keys = await Promise.all(
  Array.from({ length: 64 }, async () => {
    const privateKeyPem = generatePrivateKeyPem()
    return { privateKeyPem, csr: await createCertificateRequest({ privateKeyPem, id: 'device' }) }
  }),
)
const devices = await newDevices(devicesPerRound * (2 * rounds + 1))
const used: Device[] = []

async function newDevices(count: number): Promise<Device[]> {
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      const client = await LeanClient.connect(urls[leader] ?? '', admin.ca)
      for (let at = next++; at < count; at = next++) {
        const body = `{"name":"device ${at}","type":"Device","isAdmin":false,"enrollment":{"ott":true}}`
        const path = `${MANAGEMENT}/identities`
        const { status, body: text } = await client.request('POST', path, session.token, body)
        if (status !== 201) throw new Error(text)
      }
      client.close()
    }),
  )
  const tokens: string[] = []
  while (tokens.length < count) {
    const path = `${MANAGEMENT}/enrollments?limit=500&offset=${tokens.length}`
    const { body } = await session.request('GET', path, { headers: await latestIndex() })
    tokens.push(...(body.data as { token: string }[]).map(({ token }) => token))
  }
  return tokens.map((token, at) => {
    const key = keys[at % keys.length]
    if (key === undefined) throw new Error('no keys')
    return { ...key, token, context: null }
  })
}

/** A request header with which a list reflects all earlier writes. */
async function latestIndex(): Promise<Record<string, string>> {
  const path = `${MANAGEMENT}/services?limit=1&consistency=linearizable`
  const { headers } = await session.request('GET', path)
  return { 'net-min-index': String(headers['net-index']) }
}

interface Run {
  readonly perSecond: number
  readonly latencies: number[]
  /** Processor time per operation of each controller, or of the plain server, ms. */
  readonly cpuMs: readonly number[]
}

/**
 * Runs several clients, each of which performs one operation after the other, until all are done or
 * the time is over.
 */
async function load(
  limit: { readonly count: number } | { readonly seconds: number },
  act: (worker: number, turn: number) => Promise<void>,
): Promise<Run> {
  const latencies: number[] = []
  const cpuBefore = pids.map(processorMs)
  const from = performance.now()
  const end = 'seconds' in limit ? from + limit.seconds * 1000 : Infinity
  let next = 0
  await Promise.all(
    Array.from({ length: clientCount }, async (_, worker) => {
      for (;;) {
        const turn = next++
        const begun = performance.now()
        if (begun > end || ('count' in limit && turn >= limit.count)) return
        await act(worker, turn)
        latencies.push(performance.now() - begun)
      }
    }),
  )
  const elapsed = (performance.now() - from) / 1000
  const cpuMs = pids.map((pid, at) => (processorMs(pid) - (cpuBefore[at] ?? 0)) / latencies.length)
  return { perSecond: latencies.length / elapsed, latencies, cpuMs }
}

async function enrollments(): Promise<Run> {
  const clients = await Promise.all(
    Array.from({ length: clientCount }, (_, at) =>
      LeanClient.connect(urls[at % urls.length] ?? '', admin.ca),
    ),
  )
  const run = await load({ count: devicesPerRound }, async (worker) => {
    const device = devices.pop()
    if (device === undefined) throw new Error('no token is left')
    const path = `${CLIENT}/enroll?method=ott&token=${device.token}`
    const body = JSON.stringify({ clientCsr: device.csr })
    const client = clients[worker]
    const { status, body: text } = (await client?.request('POST', path, null, body)) ?? {}
    if (status !== 200 || text === undefined) throw new Error(`enroll: ${status} ${text}`)
    const { cert } = (JSON.parse(text) as { data: { cert: string } }).data
    used.push({ ...device, context: contextOf(cert, device.privateKeyPem) })
  })
  for (const client of clients) client.close()
  return run
}

function contextOf(cert: string, key: string): tls.SecureContext {
  return tls.createSecureContext({ cert, key, ca })
}

/** Opens a new connection, sends one request and closes the connection. */
function logIn(url: string, device: Device | undefined): Promise<string> {
  const { hostname, port } = new URL(url)
  const { promise, resolve: settle, reject } = Promise.withResolvers<string>()
  if (device?.context === undefined || device.context === null)
    throw new Error('no device has enrolled')
  const socket = tls.connect({
    host: hostname,
    port: Number(port),
    secureContext: device.context,
    ALPNProtocols: ['http/1.1'],
  })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', reject)
  socket.on('close', () => {
    const text = Buffer.concat(chunks).toString('latin1')
    if (text.startsWith('HTTP/1.1 200')) settle(text)
    else reject(new Error(text))
  })
  socket.write(
    `POST ${CLIENT}/authenticate?method=cert HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n` +
      'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  )
  return promise
}

function logIns(targets: readonly string[]): Promise<Run> {
  return load({ seconds }, async (worker, turn) => {
    await logIn(targets[worker % targets.length] ?? '', used[turn % used.length])
  })
}

/** Checks the signature of one request with a new key, and signs one certificate. */
function bareSigning(): number {
  const { privateKeyPem } = keys[0] ?? { privateKeyPem: '' }
  const key = createPublicKey(privateKeyPem)
  const pem = key.export({ type: 'spki', format: 'pem' })
  const signed = randomBytes(400)
  const signature = sign('sha256', signed, privateKeyPem)
  const from = performance.now()
  let done = 0
  for (; performance.now() < from + 1000; done += 1) {
    verify('sha256', signed, createPublicKey(pem), signature)
    sign('sha256', signed, privateKeyPem)
  }
  return (done * 1000) / (performance.now() - from)
}

let serial = 0
async function writesDuring(task: () => Promise<unknown>): Promise<number> {
  const client = await LeanClient.connect(urls[leader] ?? '', admin.ca)
  const latencies: number[] = []
  let isOver = false
  const writing = (async () => {
    while (!isOver) {
      serial += 1
      const begun = performance.now()
      const body = `{"name":"s-${serial}","encryptionRequired":true}`
      const path = `${MANAGEMENT}/services`
      const { status } = await client.request('POST', path, session.token, body)
      if (status !== 201) throw new Error(`write: ${status}`)
      latencies.push(performance.now() - begun)
    }
  })()
  await task()
  isOver = true
  await writing
  client.close()
  return percentile(latencies, 0.99)
}

const folder = join(cluster.folder, cluster.id(1))
const { identity } = parse(readFileSync(join(folder, 'config.yml'), 'utf8')) as {
  identity: { cert: string; key: string }
}
const pathOf = (name: string): string => resolve(dirname(join(folder, 'config.yml')), name)
const bareServer = fork(join(import.meta.dirname, 'support/bare-tls-server.ts'), [
  pathOf(identity.cert),
  pathOf(identity.key),
])
const [barePort] = (await once(bareServer, 'message')) as [number]
pids.push(bareServer.pid ?? 0)
const bareUrl = `https://127.0.0.1:${barePort}`

const sums = {
  signing: [] as number[],
  enrolling: [] as Run[],
  handshakes: [] as Run[],
  onOne: [] as Run[],
  onAll: [] as Run[],
  idle: [] as number[],
  busy: [] as number[],
}
await enrollments()
await logIns(urls)
await logIns([bareUrl])
for (let round = 0; round < rounds; round += 1) {
  sums.signing.push(bareSigning())
  sums.idle.push(await writesDuring(() => new Promise((done) => setTimeout(done, 2000))))
  sums.enrolling.push(await enrollments())
  sums.handshakes.push(await logIns([bareUrl]))
  sums.onOne.push(await logIns([urls[leader] ?? '']))
  sums.onAll.push(await logIns(urls))
  sums.busy.push(await writesDuring(() => Promise.all([enrollments(), logIns(urls)])))
}
bareServer.disconnect()

const report = (title: string, runs: readonly Run[], beside: readonly number[]): void => {
  const rates = runs.map(({ perSecond }) => perSecond)
  const ratios = rates.map((rate, at) => rate / (beside[at] ?? NaN))
  const p99 = spread(
    runs.map(({ latencies }) => percentile(latencies, 0.99)),
    1,
  )
  const cpu = pids.map((_, at) => {
    const own = runs.map(({ cpuMs }) => cpuMs[at] ?? NaN).sort((a, b) => a - b)
    return `${own[Math.floor(own.length / 2)]?.toFixed(2)}${at === leader ? ' (leader)' : at === urls.length ? ' (bare)' : ''}`
  })
  console.log(
    `${title.padEnd(34)} ${spread(rates)} /s, ${spread(ratios, 2)} of bare; p99 ${p99} ms; processor ms each ${cpu.join(', ')}`,
  )
}
const handshakeRates = sums.handshakes.map(({ perSecond }) => perSecond)
console.log(`${'bare check and signature'.padEnd(34)} ${spread(sums.signing)} /s, one core`)
report('enrollments by ott', sums.enrolling, sums.signing)
report('bare handshake and answer', sums.handshakes, handshakeRates)
report('log-ins, the leader alone', sums.onOne, handshakeRates)
report('log-ins, all three', sums.onAll, handshakeRates)
console.log(`write p99: alone ${spread(sums.idle, 1)} ms, beside both ${spread(sums.busy, 1)} ms`)

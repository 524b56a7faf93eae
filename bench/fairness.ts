import { parseArgs } from 'node:util'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures whether one identity that floods a controller delays another one: the latency of a
// polite client that reads one service at a time, on an idle controller and together with 32
// connections of one flooding identity, for several kinds of flood. Goal: p99 at most 5 times that
// on the idle controller.

interface Flood {
  readonly url: string
  readonly ca: string
  readonly token: string
  readonly path: string
}

const CONNECTIONS = 32
const SERVICES = 4000

if (isMainThread) await main()
else await flood(workerData as Flood)

/**
 * Floods the controller from a separate thread, so that the latency of the polite client depends on
 * the controller and not on the flooding client.
 */
async function flood({ url, ca, token, path }: Flood): Promise<void> {
  const counts: Record<number, number> = {}
  let isOver = false
  parentPort?.once('message', () => {
    isOver = true
  })
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => LeanClient.connect(url, ca)),
  )
  parentPort?.postMessage('flooding')
  await Promise.all(
    clients.map(async (client) => {
      while (!isOver) {
        const { status } = await client.request('GET', path, token)
        counts[status] = (counts[status] ?? 0) + 1
      }
    }),
  )
  parentPort?.postMessage(counts)
  for (const client of clients) client.close()
}

async function main(): Promise<void> {
  const { values: options } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
    },
  })
  const seconds = Number(options.seconds)
  console.log(
    heading('A polite client beside one flooding identity; min / median / max over rounds'),
  )
  await using cluster = await TestCluster.start({ hasCalmElections: false })
  const { admin } = cluster
  const root = await cluster.loggedIn(1)
  const api = '/edge/management/v1'
  const make = async (kind: string, body: object): Promise<string> => {
    const answer = await root.request('POST', `${api}/${kind}`, { body })
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return (answer.body.data as { id: string }).id
  }
  const url = admin.controllers[1] ?? ''
  const newSession = async (name: string): Promise<string> => {
    const identityId = await make('identities', {
      name,
      type: 'User',
      isAdmin: false,
      roleAttributes: ['readers'],
    })
    const credential = { username: name, password: `the password of ${name}` }
    await make('authenticators', { identityId, method: 'updb', ...credential })
    const client = await LeanClient.connect(url, admin.ca)
    const path = '/edge/client/v1/authenticate?method=password'
    const answer = await client.request('POST', path, null, JSON.stringify(credential))
    client.close()
    return (JSON.parse(answer.body) as { data: { token: string } }).data.token
  }
  await make('service-policies', {
    name: 'all',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#readers'],
    serviceRoles: ['#all'],
  })
  const ids: string[] = []
  for (let at = 0; at < SERVICES; at += 50) {
    const bodies = Array.from({ length: 50 }, (_, more) => ({
      name: `service ${at + more}`,
      encryptionRequired: true,
      roleAttributes: ['all'],
    }))
    ids.push(...(await Promise.all(bodies.map((body) => make('services', body)))))
  }
  const polite = await newSession('polite')
  const flooder = await newSession('flooder')
  const client = await LeanClient.connect(url, admin.ca)
  const own = `/edge/client/v1/services/${ids[7] ?? ''}`

  const latency = async (): Promise<{ p50: number; p99: number }> => {
    const latencies: number[] = []
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const from = performance.now()
      const { status } = await client.request('GET', own, polite)
      if (status !== 200) throw new Error(`status ${status}`)
      latencies.push(performance.now() - from)
      // The polite client pauses between two requests.
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
  }
  const filterOf = (terms: number): string => {
    const or = Array.from({ length: terms }, (_, at) => `name contains "z${at}"`).join(' or ')
    return `/edge/client/v1/services?filter=${encodeURIComponent(or)}`
  }
  const floods: readonly (readonly [string, string])[] = [
    ['filters that may just be asked', filterOf(Math.floor(500_000 / SERVICES) - 1)],
    ['filters that cost too much', filterOf(450)],
    ['lists of 500', '/edge/client/v1/services?limit=500'],
    ['reads by id', own],
  ]
  await latency()
  for (const [title, path] of floods) {
    const idle: { p50: number; p99: number }[] = []
    const beside: { p50: number; p99: number }[] = []
    let counts = ''
    for (let round = 0; round < Number(options.rounds); round += 1) {
      idle.push(await latency())
      const worker = new Worker(new URL(import.meta.url), {
        workerData: { url, ca: admin.ca, token: flooder, path } satisfies Flood,
      })
      await new Promise((resolve) => worker.once('message', resolve))
      beside.push(await latency())
      const ended = new Promise<unknown>((resolve) => worker.once('message', resolve))
      worker.postMessage('stop')
      counts = JSON.stringify(await ended)
    }
    const p50 = beside.map((run) => run.p50)
    const p99 = beside.map((run) => run.p99)
    const ratio = beside.map((run, at) => run.p99 / (idle[at]?.p99 ?? NaN))
    console.log(
      `${title.padEnd(32)} p50 ${spread(p50, 2)} ms   p99 ${spread(p99, 2)} ms   ` +
        `idle p99 ${spread(
          idle.map((run) => run.p99),
          2,
        )} ms   ratio ${spread(ratio, 1)}   flooder ${counts}`,
    )
  }
  client.close()
}

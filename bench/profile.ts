import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { isRunning, until } from '../test/process/support/client.ts'
import { StockNetwork } from '../test/stock/network.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading } from './support/report.ts'
import { connectOnce, stormNetwork } from './support/storm-load.ts'

// Shows where a controller spends its time. Three controllers run from the sources under load, each
// with the sampling profiler of V8. For one of them, the report shows the shares of the folders of
// src in the time of each thread, and the source lines that take the most time. `node
// bench/profile.ts [--of create|read|connect] [--seconds N] [--rows N] [--clients N]`. `(program)`
// is time in the kernel and in the engine: sockets, TLS, garbage collection.

const { values: options } = parseArgs({
  options: {
    of: { type: 'string', default: 'create' },
    seconds: { type: 'string', default: '10' },
    rows: { type: 'string', default: '12' },
    clients: { type: 'string', default: '32' },
  },
})

interface Profile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
    }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const folder = mkdtempSync(join(tmpdir(), 'flotilla-profile-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
console.log(heading(`shares of the processor time of a controller, by its threads: ${options.of}`))
const whole = await StockNetwork.start('', [], {
  hasCalmElections: false,
  program: join(import.meta.dirname, '../bin/flotilla'),
  env: { NODE_OPTIONS: `--cpu-prof --cpu-prof-interval 500 --cpu-prof-dir=${folder}` },
})
const { cluster } = whole
const { admin } = cluster
if (options.of === 'connect') await whole.addOurRouter('gate')
const session = await cluster.loggedIn(1)
const token = session.token ?? ''
const leader = await cluster.leader()
const pid = cluster.pid(leader) ?? 0
const CLIENTS = Number(options.clients)
const MANAGEMENT = '/edge/management/v1'
let serial = 0

const [url = ''] = [admin.controllers[leader - 1]]
const target = { title: 'ours', pids: [], controllers: [url], ca: admin.ca, token, folder }
const network =
  options.of === 'connect' ? await stormNetwork(target, { services: 20, devices: 64 }) : null

async function request(client: LeanClient): Promise<number> {
  if (network !== null) {
    serial += 1
    await connectOnce(target, network, serial)
    return 200
  }
  if (options.of === 'read') {
    return (await client.request('GET', `${MANAGEMENT}/services/${id}`, token)).status
  }
  serial += 1
  const body = `{"name":"profiled-${serial}","encryptionRequired":true,"roleAttributes":["a","b"]}`
  return (await client.request('POST', `${MANAGEMENT}/services`, token, body)).status
}

const made = await session.request('POST', `${MANAGEMENT}/services`, {
  body: { name: 'read', encryptionRequired: true },
})
const { id } = made.body.data as { readonly id: string }
const endMs = performance.now() + Number(options.seconds) * 1000
let requests = 0
await Promise.all(
  Array.from({ length: CLIENTS }, async () => {
    const client = await LeanClient.connect(admin.controllers[leader - 1] ?? '', admin.ca)
    while (performance.now() < endMs) {
      const status = await request(client)
      if (status >= 300) throw new Error(`status ${status}`)
      requests += 1
    }
    client.close()
  }),
)
// SIGTERM stops the process regularly; only then does it write its profile.
process.kill(pid, 'SIGTERM')
await until('the controller has ended', () => Promise.resolve(!isRunning(pid)))

const files = readdirSync(folder).filter((name) => name.includes(`.${pid}.`))
console.log(`${requests} requests by ${CLIENTS} clients to the leader`)
for (const file of files.sort()) {
  show(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile)
}
await whole[Symbol.asyncDispose]()

/**
 * A profile does not contain the name of its thread, so it is determined from the sources that ran.
 */
function threadOf({ nodes }: Profile): string {
  const urls = new Set(nodes.map(({ callFrame }) => callFrame.url))
  const has = (part: string): boolean => [...urls].some((url) => url.includes(part))
  if (has('/src/api/')) return 'main'
  if (has('/src/raft/core.ts')) return 'raft'
  return has('/src/store/log/') ? 'wal' : 'other'
}

function show(profile: Profile): void {
  const { nodes, samples, timeDeltas } = profile
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]))
  const byRoom = new Map<string, number>()
  const byLine = new Map<string, number>()
  let busyUs = 0
  for (const [at, sample] of samples.entries()) {
    const frame = frames.get(sample)
    const tookUs = timeDeltas[at] ?? 0
    if (frame === undefined || frame.functionName === '(idle)') continue
    busyUs += tookUs
    const room = roomOf(frame.functionName, frame.url)
    byRoom.set(room, (byRoom.get(room) ?? 0) + tookUs)
    if (!frame.url.includes('/src/')) continue
    const path = frame.url.slice(frame.url.indexOf('/src/') + 1)
    const line = `${frame.functionName || '(anonymous)'} ${path}:${frame.lineNumber + 1}`
    byLine.set(line, (byLine.get(line) ?? 0) + tookUs)
  }
  if (busyUs < 100_000) return
  console.log(`\n${threadOf(profile)}: ${((busyUs / requests) * 0.001).toFixed(3)} ms a request`)
  for (const [of, count] of [
    [byRoom, 20],
    [byLine, Number(options.rows)],
  ] as const) {
    const rows = [...of].sort(([, a], [, b]) => b - a).slice(0, count)
    for (const [name, us] of rows) {
      const share = (us / busyUs) * 100
      if (share >= 0.5) console.log(`  ${share.toFixed(1).padStart(5)} %  ${name}`)
    }
  }
}

function roomOf(functionName: string, url: string): string {
  const ours = /\/src\/([^/]+)\//.exec(url)
  if (ours !== null) return `src/${ours[1]}`
  const module = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)
  if (module !== null) return module[1] ?? ''
  if (url.includes('/proto/gen/')) return 'proto'
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/').replace('internal/', '')
  return functionName.startsWith('(') ? functionName : 'V8'
}

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { requirePresent } from '../src/lib/assert.ts'
import { canonicalJson } from '../src/lib/text/canonical-json.ts'
import { until } from '../test/process/support/client.ts'
import { layOut } from '../test/support/lay-out.ts'
import { freePortBlock } from '../test/support/ports.ts'
import { encodePut, ThinClient } from './support/grpc-put.ts'
import { heading, percentile, spread } from './support/report.ts'

// Compares the creation of services through a gRPC interface of Flotilla with Put in etcd: three
// processes each, fsync on, the same bytes and the same minimal client, alternating on one machine.
// Without etcd in PATH (Debian: etcd-server), only Flotilla is measured.

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    clients: { type: 'string', default: '1,64' },
    dir: { type: 'string', default: '.' },
  },
})
const seconds = Number(values.seconds)

interface Peer {
  readonly title: string
  readonly method: string
  readonly addresses: readonly string[]
  readonly processes: readonly ChildProcess[]
}

async function startFlotilla(dir: string): Promise<Peer> {
  const plan = await layOut(dir, 3)
  const doors = await freePortBlock()
  const processes = plan.controllers.map(({ id }, at) =>
    spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        join(import.meta.dirname, 'support/grpc-front.ts'),
        join(plan.dir, id, 'config.yml'),
        `${doors + at}`,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    ),
  )
  const addresses = [0, 1, 2].map((at) => `127.0.0.1:${doors + at}`)
  return {
    title: 'Flotilla createService',
    method: '/flotilla.bench.Door/Put',
    addresses,
    processes,
  }
}

async function startEtcd(dir: string): Promise<Peer> {
  const base = await freePortBlock()
  const cluster = [0, 1, 2].map((k) => `e${k}=http://127.0.0.1:${base + 100 + k}`).join(',')
  const processes = [0, 1, 2].map((k) =>
    spawn(
      'etcd',
      [
        '--name',
        `e${k}`,
        '--data-dir',
        join(dir, `e${k}`),
        '--log-level',
        'error',
        '--listen-client-urls',
        `http://127.0.0.1:${base + k}`,
        '--advertise-client-urls',
        `http://127.0.0.1:${base + k}`,
        '--listen-peer-urls',
        `http://127.0.0.1:${base + 100 + k}`,
        '--initial-advertise-peer-urls',
        `http://127.0.0.1:${base + 100 + k}`,
        '--initial-cluster',
        cluster,
        '--initial-cluster-token',
        'bench',
      ],
      { stdio: ['ignore', 'ignore', 'ignore'] },
    ),
  )
  const addresses = [0, 1, 2].map((k) => `127.0.0.1:${base + k}`)
  return { title: 'etcd Put', method: '/etcdserverpb.KV/Put', addresses, processes }
}

let serial = 0
/**
 * Next payload of about 300 bytes that creates a service; etcd gets the same bytes as a value, with
 * the name of the service as the key.
 */
function nextPut(): Buffer {
  serial += 1
  const name = `service-${process.pid}-${serial}`
  const fields = {
    name,
    encryptionRequired: true,
    terminatorStrategy: 'smartrouting',
    maxIdleTimeMillis: 0,
    configs: [],
    roleAttributes: ['finance', 'internal'],
    tags: { owner: 'bench', note: 'x'.repeat(110) },
  }
  return encodePut(Buffer.from(name), Buffer.from(canonicalJson(fields)))
}

interface Run {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

async function load(clients: readonly ThinClient[], callers: number): Promise<Run> {
  const latencies: number[] = []
  const end = performance.now() + seconds * 1000
  await Promise.all(
    Array.from({ length: callers }, async (_, at) => {
      const client = requirePresent(clients[at % clients.length], 'there are clients')
      for (let from = performance.now(); from < end;) {
        await client.put(nextPut())
        const now = performance.now()
        latencies.push(now - from)
        from = now
      }
    }),
  )
  const perSecond = latencies.length / seconds
  return { perSecond, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
}

function hasEtcd(): boolean {
  try {
    execFileSync('etcd', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

console.log(
  heading(`Writes over gRPC, ${nextPut().length} B, three processes, clients over all three`),
)
const dir = mkdtempSync(join(values.dir, 'flotilla-etcd-'))
const peers: Peer[] = []
try {
  peers.push(await startFlotilla(dir))
  if (hasEtcd()) peers.push(await startEtcd(dir))
  else console.log('etcd is not on PATH (Debian package etcd-server): measured alone')
  for (const peer of peers) {
    const probe = new ThinClient(peer.addresses[0] ?? '', peer.method)
    await until(
      `${peer.title} answers`,
      async () => (await probe.put(nextPut())).length >= 0,
      60_000,
    )
    probe.close()
  }
  for (const count of values.clients.split(',').map(Number)) {
    const sides = peers.map((peer) => ({
      peer,
      runs: [] as Run[],
      // One connection to each controller, which all callers share, as client libraries do.
      clients: peer.addresses.map((address) => new ThinClient(address, peer.method)),
    }))
    for (const side of sides) await load(side.clients, count)
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const side of sides) side.runs.push(await load(side.clients, count))
    }
    for (const { peer, runs, clients } of sides) {
      for (const client of clients) client.close()
      const line = [
        `${spread(runs.map((run) => run.perSecond))} /s`,
        `p50 ${spread(
          runs.map((run) => run.p50),
          2,
        )} ms`,
        `p99 ${spread(
          runs.map((run) => run.p99),
          1,
        )} ms`,
      ]
      console.log(`${peer.title.padEnd(24)} ${`${count}`.padStart(3)} clients: ${line.join(', ')}`)
    }
    const [ours, theirs] = sides
    if (ours !== undefined && theirs !== undefined) {
      const ratios = ours.runs.map((run, at) => run.perSecond / (theirs.runs[at]?.perSecond ?? NaN))
      console.log(
        `ratio                    ${`${count}`.padStart(3)} clients: ${spread(ratios, 2)}`,
      )
    }
  }
} finally {
  for (const peer of peers) {
    for (const child of peer.processes) {
      if (child.exitCode === null) {
        const ended = new Promise((done) => child.once('exit', done))
        child.kill(peer.title.startsWith('etcd') ? 'SIGKILL' : 'SIGTERM')
        await ended
      }
    }
  }
  rmSync(dir, { recursive: true, force: true })
}

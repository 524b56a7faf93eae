import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { type Client, pause, until } from '../test/process/support/client.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { heading, percentile } from './support/report.ts'

// Measures how a controller catches up by a snapshot, after it was stopped while the others
// truncated their logs and clients continued to write: the rate of the transfer, the memory on both
// sides, and the effect on the writes. Uses three real controllers with gRPC over TLS.

const { values: options } = parseArgs({
  options: {
    mib: { type: 'string', default: '100' },
    'record-bytes': { type: 'string', default: '4096' },
    clients: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: `${64 * 1024 * 1024}` },
  },
})
const MIB = 1024 * 1024
const recordBytes = Number(options['record-bytes'])
const records = Math.ceil((Number(options.mib) * MIB) / recordBytes)

/** Number of services written so far, which makes their names unique. */
let written = 0

async function write(client: Client, bytes: number): Promise<number> {
  written += 1
  const name = `s-${written}`
  const body = { name, encryptionRequired: true, tags: { filling: 'f'.repeat(bytes) } }
  const begin = performance.now()
  const answer = await client.request('POST', '/edge/management/v1/services', { body })
  if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.text}`)
  return performance.now() - begin
}

async function fill(client: Client): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      for (; next < records; next += 1) await write(client, recordBytes)
    }),
  )
}

/** Latencies, ms, of clients that create small services until `isOver` returns true. */
async function writeUntil(client: Client, isOver: () => boolean): Promise<number[]> {
  const latencies: number[] = []
  await Promise.all(
    Array.from({ length: Number(options.clients) }, async () => {
      while (!isOver()) latencies.push(await write(client, 100))
    }),
  )
  return latencies
}

function memoryMib(pid: number | null, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? NaN) / 1024
}

function spoken(latencies: number[]): string {
  const at = (q: number): string => percentile(latencies, q).toFixed(1)
  return `${latencies.length} writes, p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms`
}

console.log(heading(`Snapshot of ${options.mib} MiB, records of ${recordBytes} B`))
const patienceMs = 600_000
await using cluster = await TestCluster.start({
  env: {
    FLOTILLA_LOG_RETAIN_ENTRIES: '1000',
    FLOTILLA_LOG_RETAIN_BYTES: `${4 * MIB}`,
    FLOTILLA_CLUSTER_SNAPSHOT_BYTES_PER_SECOND: options.rate,
  },
})
const [away] = await cluster.followers()
if (away === undefined) throw new Error('no follower')
const logOf = (k: number): string =>
  readFileSync(join(cluster.folder, cluster.id(k), 'controller.log'), 'utf8')
const sentLine = /snapshot to \S+ sent: ([^"]+)/

cluster.kill(away)
await fill(await cluster.loggedIn(await cluster.leader()))
const leader = await cluster.leader()
const client = await cluster.loggedIn(leader)
const endMs = performance.now() + Number(options.seconds) * 1000
const without = await writeUntil(client, () => performance.now() > endMs)

const leaderPid = cluster.pid(leader)
const leaderMibBefore = memoryMib(leaderPid, 'VmRSS')
let leaderMibMost = leaderMibBefore
cluster.run(away)
await until(
  `${cluster.id(away)} is sent a snapshot`,
  () => Promise.resolve(/a snapshot for it/.test(logOf(leader))),
  patienceMs,
)
const isSent = (): boolean => {
  leaderMibMost = Math.max(leaderMibMost, memoryMib(leaderPid, 'VmRSS'))
  return sentLine.test(logOf(leader))
}
let isDone = false
const during = writeUntil(client, () => isDone)
await until('it is installed', () => Promise.resolve(isSent()), patienceMs)
isDone = true
console.log(`transfer: ${sentLine.exec(logOf(leader))?.[1]}`)
console.log(`writes without it: ${spoken(without)}`)
console.log(`writes during it:  ${spoken(await during)}`)
console.log(
  `leader: ${(leaderMibMost - leaderMibBefore).toFixed(0)} MiB more than the ${leaderMibBefore.toFixed(0)} before`,
)
await pause(3000)
const receiverPid = cluster.pid(away)
const most = memoryMib(receiverPid, 'VmHWM')
const after = memoryMib(receiverPid, 'VmRSS')
console.log(
  `receiver: ${most.toFixed(0)} MiB at most, ${after.toFixed(0)} with the state in memory afterwards`,
)

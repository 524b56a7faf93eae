import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import type { Client } from '../test/process/support/client.ts'
import { flotilla } from '../test/process/support/cluster.ts'
import { expectMembers, Fleet } from '../test/process/support/fleet.ts'
import { makeLarge } from './support/large-backup.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures how long a backup takes, how it affects writes, and how long a network is down while it
// is restored from a backup. Uses three real controllers with gRPC over TLS, writes through HTTPS,
// and many identities, each with a certificate.

const { values: options } = parseArgs({
  options: {
    identities: { type: 'string', default: '100000' },
    clients: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '3' },
  },
})
const identities = Number(options.identities)
const MIB = 1024 * 1024

const fleet = await Fleet.create(4)
const publicPath = join(fleet.dir, 'backup.pem')
const privatePath = join(fleet.dir, 'backup.key')
let written = 0

function makeKeys(): void {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(publicPath, publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(privatePath, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
}

interface Timed {
  readonly wallMs: number
  /** Processor time of the command, over all its threads. */
  readonly processorMs: number
}

/** Runs a snapshot verb under a shell that prints its resource use. @throws if it fails. */
function snapshot(...words: readonly string[]): Promise<Timed> {
  const begin = performance.now()
  const script = ['-c', '"$@" > /dev/null && times', 'sh', flotilla, 'cluster', 'snapshot']
  return new Promise((resolve, reject) => {
    const options = { env: fleet.env, cwd: fleet.dir, timeout: 900_000 }
    execFile('sh', [...script, ...words], options, (error, stdout, stderr) => {
      const wallMs = performance.now() - begin
      if (error !== null) reject(new Error(`${words.join(' ')} failed:\n${stderr}`))
      else resolve({ wallMs, processorMs: processorMsIn(stdout) })
    })
  })
}

/**
 * The second line that `times` prints contains the times of the shell's child processes: `0m1.230s
 * 0m0.100s`.
 */
function processorMsIn(text: string): number {
  const parts = [...(text.trim().split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
  return parts.reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60e3 + Number(seconds) * 1e3,
    0,
  )
}

/** Processor time of controller k since its start. */
function processorMsOf(k: number): number {
  const stat = readFileSync(`/proc/${pidOf(k)}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  // User and system time, fields 14 and 15 of proc(5), in ticks of 10 ms.
  return (Number(stat[11]) + Number(stat[12])) * 10
}

function pidOf(k: number): string {
  return readFileSync(join(fleet.folder(k), 'pid'), 'utf8').trim()
}

async function write(client: Client): Promise<number> {
  written += 1
  const body = { name: `s-${written}`, encryptionRequired: true }
  const begin = performance.now()
  const answer = await client.request('POST', '/edge/management/v1/services', { body })
  if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.text}`)
  return performance.now() - begin
}

async function writeUntil(client: Client, isOver: () => boolean): Promise<number[]> {
  const latencies: number[] = []
  await Promise.all(
    Array.from({ length: Number(options.clients) }, async () => {
      while (!isOver()) latencies.push(await write(client))
    }),
  )
  return latencies
}

function spoken(latencies: number[]): string {
  const at = (q: number): string => percentile(latencies, q).toFixed(1)
  return `${latencies.length} writes, p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms`
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1)
}

function told({ wallMs, processorMs }: Timed): string {
  return `${seconds(wallMs)} s (${seconds(processorMs)} s of processor time)`
}

function memoryMib(k: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pidOf(k)}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? NaN) / 1024
}

console.log(heading(`Backup of ${identities} identities, each with a certificate`))
try {
  makeKeys()
  await fleet.init()
  const small = join(fleet.dir, 'small.backup')
  const large = join(fleet.dir, 'large.backup')
  await snapshot('save', small, '--config', fleet.config(1), '--plaintext')
  await makeLarge(small, large, identities, join(fleet.folder(1), 'cert.pem'))
  await fleet.stop(1)

  mkdirSync(fleet.folder(2))
  const begin = performance.now()
  const restored = await snapshot('restore', large, fleet.config(2), ...fleet.flags(2))
  await fleet.start(2)
  const first = await fleet.loggedIn(2)
  const answeredMs = performance.now() - begin
  const startedMs = processorMsOf(2)
  console.log(
    `restore from ${(statSync(large).size / MIB).toFixed(0)} MiB: data folder after ${told(restored)}; first log-in after ${seconds(answeredMs)} s, ${seconds(startedMs)} s of processor time of the controller`,
  )
  const before = processorMsOf(2)
  const quiet = await snapshot(
    'save',
    join(fleet.dir, 'quiet.backup'),
    '--config',
    fleet.config(2),
    '--recipient',
    publicPath,
  )
  console.log(
    `save, nobody writes: ${told(quiet)} of the command, which reads the file back; ${seconds(processorMsOf(2) - before)} s of processor time of the controller`,
  )
  for (const k of [3, 4]) await fleet.join(k, 2)
  await expectMembers(fleet, [2, 3, 4])

  const leader = await fleet.leader(2)
  const client = leader === 2 ? first : await fleet.loggedIn(leader)
  const endMs = performance.now() + Number(options.seconds) * 1000
  console.log(
    `writes, idle:          ${spoken(await writeUntil(client, () => performance.now() > endMs))}`,
  )
  for (const [who, k] of [
    ['leader', leader],
    ['follower', leader === 2 ? 3 : 2],
  ] as const) {
    const before = memoryMib(k, 'VmRSS')
    let most = before
    let isOver = false
    const watch = setInterval(() => (most = Math.max(most, memoryMib(k, 'VmRSS'))), 50)
    const during = writeUntil(client, () => isOver)
    const times: Timed[] = []
    for (let round = 0; round < Number(options.rounds); round += 1) {
      const file = join(fleet.dir, `${who}-${round}.backup`)
      times.push(
        await snapshot('save', file, '--config', fleet.config(k), '--recipient', publicPath),
      )
    }
    isOver = true
    clearInterval(watch)
    console.log(`writes, ${who} saves: ${spoken(await during)}`)
    console.log(
      `save by the ${who}: ${spread(
        times.map(({ wallMs }) => wallMs / 1000),
        2,
      )} s (min / median / max), start of the command included; ${(most - before).toFixed(0)} MiB more memory than ${before.toFixed(0)}`,
    )
  }
  const verified = await snapshot(
    'verify',
    join(fleet.dir, 'leader-0.backup'),
    '--key',
    privatePath,
  )
  console.log(`verify with its key: ${told(verified)}`)
} finally {
  await fleet[Symbol.asyncDispose]()
}

import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { sendToAdminSocket } from '../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../src/cli/client/connection.ts'
import type { ClusterStatus } from '../src/api/cluster/cluster-status.ts'
import type { Client } from '../test/process/support/client.ts'
import { fleetAdmin, Fleet } from '../test/process/support/fleet.ts'
import { makeLarge } from './support/large-backup.ts'
import { heading, percentile } from './support/report.ts'

// Measures how long a controller takes to join a cluster with a large state, how long a restore
// into that cluster takes, and how each affects writes. Uses real controllers with gRPC over TLS,
// and writes through HTTPS on the leader.

const { values: options } = parseArgs({
  options: {
    identities: { type: 'string', default: '100000' },
    clients: { type: 'string', default: '4' },
  },
})
const identities = Number(options.identities)
const MIB = 1024 * 1024
const fleet = await Fleet.create(4)

/**
 * Creates services one after the other until `end` is called. Logs in again when the session has
 * ended.
 */
class Writer {
  readonly latencies: number[] = []
  readonly refused: string[] = []
  /** Longest time between two acknowledged writes of this writer. */
  longestGapMs = 0
  #isOver = false
  readonly #done: Promise<void>

  constructor(client: Client, name: string) {
    this.#done = this.#run(client, name)
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #run(client: Client, name: string): Promise<void> {
    let lastMs = performance.now()
    for (let n = 0; !this.#isOver; n += 1) {
      const body = { name: `${name}-${n}`, encryptionRequired: true }
      const begin = performance.now()
      const answer = await client.request('POST', '/edge/management/v1/services', { body })
      if (answer.status === 401) {
        await client.logIn({ ...fleetAdmin, controllers: [], ca: '' })
        continue
      }
      if (answer.status !== 201) {
        this.refused.push(`${answer.status} ${answer.text.slice(0, 200)}`)
        continue
      }
      const now = performance.now()
      this.latencies.push(now - begin)
      this.longestGapMs = Math.max(this.longestGapMs, now - lastMs)
      lastMs = now
    }
  }
}

let round = 0

/**
 * Runs an action while several clients write. @returns its result, and a text with their latencies.
 */
async function during<T>(k: number, act: () => Promise<T>): Promise<readonly [T, string]> {
  round += 1
  const clients = await Promise.all(
    Array.from({ length: Number(options.clients) }, () => fleet.loggedIn(k)),
  )
  const writers = clients.map((client, at) => new Writer(client, `w${round}-${at}`))
  const result = await act()
  await Promise.all(writers.map((writer) => writer.end()))
  for (const client of clients) client.close()
  const all = writers.flatMap(({ latencies }) => latencies)
  const refused = writers.flatMap(({ refused: some }) => some)
  const gap = Math.max(...writers.map(({ longestGapMs }) => longestGapMs))
  const at = (q: number): string => percentile(all, q).toFixed(1)
  const writes = `${all.length} writes, p50 ${at(0.5)}, p99 ${at(0.99)}, longest pause ${gap.toFixed(0)} ms, ${refused.length} refused`
  return [result, [writes, ...refused.slice(0, 3)].join('\n  ')]
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await act()
  return (performance.now() - begin) / 1000
}

async function verb(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await fleet.cli(['cluster', 'snapshot', ...words], '', 900_000)
  if (code !== 0) throw new Error(`${words.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout
}

/** Processor time of a controller since its start, in seconds. */
function processorSeconds(k: number): number {
  const pid = readFileSync(join(fleet.folder(k), 'pid'), 'utf8').trim()
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(stat[11]) + Number(stat[12])) / 100
}

async function restored(k: number, file: string, ...words: readonly string[]): Promise<void> {
  const { clusterId } = (await sendToAdminSocket(
    fleet.data(k),
    clusterOperationRequest('status'),
  )) as ClusterStatus
  const before = [2, 3, 4].map(processorSeconds)
  const all = ['restore', file, '--config', fleet.config(k), '--confirm', clusterId, ...words]
  const [seconds, seen] = await during(k, () => timed(() => verb(...all)))
  const spent = [2, 3, 4].map((one, at) => (processorSeconds(one) - (before[at] ?? 0)).toFixed(1))
  console.log(
    `  command ${seconds.toFixed(1)} s, its loading and preview included; processor time of the controllers ${spent.join(', ')} s\n  ${seen}`,
  )
}

console.log(heading(`Join and restore with ${identities} identities, each with a certificate`))
try {
  await fleet.init()
  const small = join(fleet.dir, 'small.backup')
  const large = join(fleet.dir, 'large.backup')
  await verb('save', small, '--config', fleet.config(1), '--plaintext')
  await makeLarge(small, large, identities, join(fleet.folder(1), 'cert.pem'))
  await fleet.stop(1)
  mkdirSync(fleet.folder(2))
  await verb('restore', large, fleet.config(2), ...fleet.flags(2))
  await fleet.start(2)
  console.log(`state of ${(statSync(large).size / MIB).toFixed(0)} MiB`)

  const [, idle] = await during(2, () => new Promise((done) => setTimeout(done, 10_000)))
  console.log(`nothing else happens:\n  ${idle}`)
  for (const k of [3, 4]) {
    const [seconds, seen] = await during(2, () => timed(() => fleet.join(k, 2)))
    console.log(
      `ctrl${k} joins as a voter: ${seconds.toFixed(1)} s, ${processorSeconds(k).toFixed(1)} s of its processor time\n  ${seen}`,
    )
  }
  const full = join(fleet.dir, 'full.backup')
  const leader = await fleet.leader(2)
  await verb('save', full, '--config', fleet.config(leader), '--plaintext')
  console.log('restore that removes all of them:')
  await restored(leader, small, '--other-cluster')
  console.log('restore that brings all of them back:')
  await restored(leader, full)
} finally {
  await fleet[Symbol.asyncDispose]()
}

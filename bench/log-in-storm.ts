import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, percentile, spread } from './support/report.ts'

// Does password hashing disturb writes? The latency of one writing client without and with 8 clients that log in as
// fast as they can, in turns, and the number of elections meanwhile.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    writers: { type: 'string', default: '1' },
  },
})

console.log(
  heading('Write latency without and with 8 clients logging in; min / median / max over rounds'),
)
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const token = (await cluster.loggedIn(1)).token
const connect = (k: number): Promise<LeanClient> =>
  LeanClient.connect(admin.controllers[k % 3] ?? '', admin.ca)
const writers = await Promise.all(
  Array.from({ length: Number(options.writers) }, (_, k) => connect(k)),
)
const guests = await Promise.all(Array.from({ length: 8 }, (_, k) => connect(k)))
let serial = 0

async function writeFor(seconds: number): Promise<number[]> {
  const latencies: number[] = []
  const end = performance.now() + seconds * 1000
  await Promise.all(
    writers.map(async (writer) => {
      while (performance.now() < end) {
        serial += 1
        const from = performance.now()
        const body = `{"name":"s-${serial}","encryptionRequired":true}`
        const answer = await writer.request('POST', '/edge/management/v1/services', token, body)
        if (answer.status !== 201) throw new Error(answer.body)
        latencies.push(performance.now() - from)
      }
    }),
  )
  return latencies
}

const term = async (): Promise<number | undefined> =>
  (await cluster.status(1)).find((member) => member.role === 'leader')?.term
const before = await term()
await writeFor(2)
const idle: { p50: number; p99: number }[] = []
const storm: { p50: number; p99: number }[] = []
let logIns = 0
let refused = 0
for (let round = 0; round < Number(options.rounds); round += 1) {
  const quiet = await writeFor(Number(options.seconds))
  idle.push({ p50: percentile(quiet, 0.5), p99: percentile(quiet, 0.99) })
  let isOver = false
  const body = JSON.stringify({ username: admin.username, password: admin.password })
  const guestsDone = guests.map(async (guest) => {
    while (!isOver) {
      const path = '/edge/client/v1/authenticate?method=password'
      const answer = await guest.request('POST', path, null, body)
      if (answer.status === 200) logIns += 1
      else refused += 1
    }
  })
  const loud = await writeFor(Number(options.seconds))
  isOver = true
  await Promise.all(guestsDone)
  storm.push({ p50: percentile(loud, 0.5), p99: percentile(loud, 0.99) })
}
for (const client of [...writers, ...guests]) client.close()
const show = (title: string, runs: readonly { p50: number; p99: number }[]): void =>
  console.log(
    `${title.padEnd(14)} p50 ${spread(
      runs.map((run) => run.p50),
      2,
    )} ms   p99 ${spread(
      runs.map((run) => run.p99),
      2,
    )} ms`,
  )
show('idle', idle)
show('log-in storm', storm)
const ratios = storm.map((run, at) => run.p99 / (idle[at]?.p99 ?? NaN))
console.log(`p99 ratio      ${spread(ratios, 2)}`)
console.log(`log-ins ${logIns}, refused ${refused}; term ${before} before, ${await term()} after`)

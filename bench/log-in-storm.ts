import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, percentile, spread } from './support/report.ts'

// Does password hashing disturb writes, and do writes keep log-ins from ever ending? The latency of writing clients without
// and with clients that log in as fast as they can, in turns, that of the log-ins, and the number of elections meanwhile.
// `--writers 64 --guests 1` shows the other side: one log-in at a time beside writers that leave no core idle.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    writers: { type: 'string', default: '1' },
    guests: { type: 'string', default: '8' },
  },
})

console.log(
  heading(
    `Write latency of ${options.writers} clients without and with ${options.guests} clients logging in; ` +
      'min / median / max over rounds',
  ),
)
await using cluster = await TestCluster.start({ hasCalmElections: false })
const { admin } = cluster
const token = (await cluster.loggedIn(1)).token
const connect = (k: number): Promise<LeanClient> =>
  LeanClient.connect(admin.controllers[k % 3] ?? '', admin.ca)
const writers = await Promise.all(
  Array.from({ length: Number(options.writers) }, (_, k) => connect(k)),
)
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
const logIns: number[] = []
let refused = 0
for (let round = 0; round < Number(options.rounds); round += 1) {
  const quiet = await writeFor(Number(options.seconds))
  idle.push({ p50: percentile(quiet, 0.5), p99: percentile(quiet, 0.99) })
  let isOver = false
  // A connection that asks nothing is soon closed.
  const guests = await Promise.all(
    Array.from({ length: Number(options.guests) }, (_, k) => connect(k)),
  )
  const body = JSON.stringify({ username: admin.username, password: admin.password })
  const guestsDone = guests.map(async (guest) => {
    while (!isOver) {
      const path = '/edge/client/v1/authenticate?method=password'
      const from = performance.now()
      const answer = await guest.request('POST', path, null, body)
      if (answer.status === 200) logIns.push(performance.now() - from)
      else refused += 1
    }
  })
  const loud = await writeFor(Number(options.seconds))
  isOver = true
  await Promise.all(guestsDone)
  for (const guest of guests) guest.close()
  storm.push({ p50: percentile(loud, 0.5), p99: percentile(loud, 0.99) })
}
for (const client of writers) client.close()
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
const logInMs = [0.5, 0.99, 1].map((part) => percentile(logIns, part).toFixed(0)).join(' / ')
console.log(`a log-in       p50 / p99 / max ${logInMs} ms`)
console.log(
  `log-ins ${logIns.length}, refused ${refused}; term ${before} before, ${await term()} after`,
)

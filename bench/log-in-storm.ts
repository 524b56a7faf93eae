import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { PasswordVerifier, hashPassword } from '../src/auth/factors/password-verifier.ts'
import { passwordHashConcurrency } from '../src/controller/settings.ts'
import { lowerPoolPriority } from '../src/threads/pool-priority.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { processorMs } from './support/processor-time.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures whether password hashing delays writes, and whether writes delay log-ins: the latency of
// writing clients, alternating without and with clients (guests) that log in as fast as they can,
// the latency of the log-ins, and the number of elections. `--writers 64 --guests 1` shows the
// opposite case: one log-in at a time together with writers that use all cores. Also measures the
// overhead of a log-in: log-ins per second on three controllers compared with plain hashes in the
// same number of threads with the same priority, alternating, and the processor time of each. With
// more guests than permitted (`--guests 240`), each refusal must contain a time to retry.

if (isMainThread) await main()
else await hashBarely()

/**
 * Computes plain hashes in a separate thread, at most as many at the same time as three controllers
 * do. Reports hashes per second.
 */
async function hashBarely(): Promise<void> {
  const password = 'a password of nobody'
  const known = await hashPassword(password)
  lowerPoolPriority()
  const atOnceMax = 3 * passwordHashConcurrency(availableParallelism())
  const verifier = new PasswordVerifier({ atOnceMax, waitingMax: 0 })
  const by = { sharer: 'from ', isGone: false }
  parentPort?.on('message', (seconds: number) => {
    void (async () => {
      const from = performance.now()
      const before = process.cpuUsage()
      let hashes = 0
      await Promise.all(
        Array.from({ length: atOnceMax }, async () => {
          while (performance.now() < from + seconds * 1000) {
            if (await verifier.verify(by, known, password)) hashes += 1
          }
        }),
      )
      const { user, system } = process.cpuUsage(before)
      const perSecond = (hashes * 1000) / (performance.now() - from)
      parentPort?.postMessage({ perSecond, eachMs: (user + system) / 1000 / hashes } satisfies Bare)
    })()
  })
}

interface Bare {
  readonly perSecond: number
  /** Processor time of each operation, ms. */
  readonly eachMs: number
}

interface Storm {
  readonly latencies: number[]
  readonly logIns: number[]
  /** Time until the last guest has received its response. */
  tookMs: number
  refused: number
  /** Number of refusals that contain no time to retry. */
  withoutRetry: number
}

async function main(): Promise<void> {
  const { values: options } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      writers: { type: 'string', default: '1' },
      guests: { type: 'string', default: '8' },
    },
  })
  const seconds = Number(options.seconds)
  console.log(
    heading(
      `Write latency of ${options.writers} clients without and with ${options.guests} clients logging in; ` +
        'min / median / max over rounds',
    ),
  )
  await using cluster = await TestCluster.start({ hasCalmElections: false })
  const { admin } = cluster
  const root = await cluster.loggedIn(1)
  const token = root.token
  const connect = (k: number): Promise<LeanClient> =>
    LeanClient.connect(admin.controllers[k % 3] ?? '', admin.ca)
  const writers = await Promise.all(
    Array.from({ length: Number(options.writers) }, (_, k) => connect(k)),
  )
  const people = await peopleOf(20, async (path, body) => {
    const answer = await root.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(answer.text)
    return (answer.body.data as { id: string }).id
  })
  const hasher = new Worker(new URL(import.meta.url))
  let serial = 0

  async function writeFor(ms: number): Promise<number[]> {
    const latencies: number[] = []
    const end = performance.now() + ms
    await Promise.all(
      writers.map(async (last, k) => {
        // The controller may have closed a connection that was idle for a long round.
        const writer = last.isOpen ? last : (writers[k] = await connect(k))
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

  /** Runs `during` while guests log in as fast as they are permitted to. */
  async function storm(during: () => Promise<number[]>): Promise<Storm> {
    const seen: Storm = { latencies: [], logIns: [], tookMs: 0, refused: 0, withoutRetry: 0 }
    let isOver = false
    // Connects directly before the storm, because a controller soon closes an idle connection.
    const guests = await Promise.all(
      Array.from({ length: Number(options.guests) }, (_, k) => connect(k)),
    )
    const beganAt = performance.now()
    const done = guests.map(async (guest, at) => {
      const body = JSON.stringify(people[at % people.length])
      while (!isOver) {
        const path = '/edge/client/v1/authenticate?method=password'
        const from = performance.now()
        const {
          status,
          retryAfterSeconds,
          body: text,
        } = await guest.request('POST', path, null, body)
        if (status === 200) {
          seen.logIns.push(performance.now() - from)
          continue
        }
        if (status !== 429) throw new Error(text)
        seen.refused += 1
        if (retryAfterSeconds === null) seen.withoutRetry += 1
        const end = performance.now() + 1000 * (retryAfterSeconds ?? 1)
        while (!isOver && performance.now() < end) {
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      }
    })
    seen.latencies.push(...(await during()))
    isOver = true
    await Promise.all(done)
    seen.tookMs = performance.now() - beganAt
    for (const guest of guests) guest.close()
    return seen
  }

  const pids = [1, 2, 3].map((k) => cluster.pid(k) ?? 0)
  /** Processor time of all controllers during the task, ms. */
  const spent = async (task: () => Promise<unknown>): Promise<number> => {
    const total = (): number => pids.reduce((sum, pid) => sum + processorMs(pid), 0)
    const from = total()
    await task()
    return total() - from
  }
  const term = async (): Promise<number | undefined> =>
    (await cluster.status(1)).find((member) => member.role === 'leader')?.term
  const before = await term()
  await writeFor(2000)
  const rest = (): Promise<number[]> =>
    new Promise((resolve) => setTimeout(() => resolve([]), seconds * 1000))
  const idle: Figures[] = []
  const loud: Figures[] = []
  const bare: Bare[] = []
  const eachMs: number[] = []
  const rates: number[] = []
  const besideWrites: number[] = []
  const logIns: number[] = []
  let refused = 0
  let withoutRetry = 0
  for (let round = 0; round < Number(options.rounds); round += 1) {
    idle.push(figuresOf(await writeFor(seconds * 1000)))
    const told = new Promise<Bare>((resolve) => hasher.once('message', resolve))
    hasher.postMessage(seconds)
    bare.push(await told)
    const restMs = await spent(rest)
    const storms: Storm[] = []
    const stormMs = await spent(async () => storms.push(await storm(rest)))
    const [alone = noStorm] = storms
    rates.push(rateOf(alone))
    eachMs.push((stormMs - (restMs * alone.tookMs) / 1000 / seconds) / alone.logIns.length)
    const seen = await storm(() => writeFor(seconds * 1000))
    besideWrites.push(rateOf(seen))
    logIns.push(...seen.logIns)
    refused += seen.refused + alone.refused
    withoutRetry += seen.withoutRetry + alone.withoutRetry
    loud.push(figuresOf(seen.latencies))
  }
  for (const client of writers) client.close()
  await hasher.terminate()
  show('idle', idle)
  show('log-in storm', loud)
  const ratios = loud.map((run, at) => run.p99 / (idle[at]?.p99 ?? NaN))
  console.log(`p99 ratio      ${spread(ratios, 2)}`)
  const logInMs = [0.5, 0.99, 1].map((part) => percentile(logIns, part).toFixed(0)).join(' / ')
  console.log(`a log-in       p50 / p99 / max ${logInMs} ms`)
  const share = (of: readonly number[]): string =>
    spread(of.map((rate, at) => (100 * rate) / (bare[at]?.perSecond ?? NaN)))
  console.log(
    `a second       bare hashes ${spread(
      bare.map(({ perSecond }) => perSecond),
      1,
    )}   log-ins ${spread(rates, 1)}, ${share(rates)} % of them   ` +
      `beside writes ${spread(besideWrites, 1)}, ${share(besideWrites)} %`,
  )
  const bareMs = spread(
    bare.map((one) => one.eachMs),
    1,
  )
  console.log(
    `processor time a bare hash ${bareMs} ms   a log-in on all controllers ${spread(eachMs, 1)} ms`,
  )
  console.log(
    `refused ${refused}, ${withoutRetry} of them without Retry-After; term ${before} before, ${await term()} after`,
  )
}

const noStorm: Storm = { latencies: [], logIns: [], tookMs: 0, refused: 0, withoutRetry: 0 }

function rateOf({ logIns, tookMs }: Storm): number {
  return (logIns.length * 1000) / tookMs
}

interface Credential {
  readonly username: string
  readonly password: string
}

/**
 * Creates several identities, because the number of sessions of one identity and the rate of log-in
 * attempts with one name are limited.
 */
async function peopleOf(
  count: number,
  make: (path: string, body: object) => Promise<string>,
): Promise<Credential[]> {
  const people: Credential[] = []
  for (let at = 0; at < count; at += 1) {
    const credential = { username: `guest ${at}`, password: `the password of guest ${at}` }
    const identityId = await make('identities', {
      name: credential.username,
      type: 'User',
      isAdmin: false,
    })
    await make('authenticators', { identityId, method: 'updb', ...credential })
    people.push(credential)
  }
  return people
}

interface Figures {
  readonly p50: number
  readonly p99: number
}

function figuresOf(latencies: number[]): Figures {
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
}

function show(title: string, runs: readonly Figures[]): void {
  const p50 = spread(
    runs.map((run) => run.p50),
    2,
  )
  const p99 = spread(
    runs.map((run) => run.p99),
    2,
  )
  console.log(`${title.padEnd(14)} p50 ${p50} ms   p99 ${p99} ms`)
}

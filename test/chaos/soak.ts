import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Client, pause, until } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { folderBytes, metric, processMemory } from './process-memory.ts'
import { SoakLoad } from './soak-load.ts'

// Runs three real controllers. One is killed and stays away while clients change a fixed set of
// services as fast as the others accept it, with bodies up to the maximum size and more of them at
// the same time than may be uncommitted. At the end, the killed controller returns and must catch
// up. No process may ever exceed its memory limit.

const help = `usage: node test/chaos/soak.ts [options]

  --minutes N        how long to write (30)
  --writers N        connections that write without pause (64)
  --burst-writers N  connections that all write 1 MiB at once, again and again (32)
  --burst-pause-ms N between two of these bursts (60000)
  --mib N            most resident memory of each process (512)
  --help             this

Exits with 1 when a process took more, a write was lost or the states differ.`

const defaults = {
  minutes: '30',
  writers: '64',
  'burst-writers': '32',
  'burst-pause-ms': '60000',
  mib: '512',
} as const
const SERVICES = 1000
const SAMPLE_MS = 10_000
const KIB_A_MIB = 1024
const nodes = [1, 2, 3] as const

function settings(): Record<keyof typeof defaults, number> {
  const wrong = (reason: string): never => {
    console.error(`${reason}\n\n${help}`)
    process.exit(2)
  }
  const options = Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [
      name,
      { type: 'string' as const, default: value },
    ]),
  )
  let given: Record<string, string | boolean | undefined> = {}
  try {
    given = parseArgs({ options: { ...options, help: { type: 'boolean' } } }).values
  } catch (error) {
    wrong(error instanceof Error ? error.message : String(error))
  }
  if (given['help'] === true) {
    console.log(help)
    process.exit(0)
  }
  const number = (name: keyof typeof defaults): number => {
    const value = Number(given[name])
    if (!(value > 0) || !Number.isFinite(value)) wrong(`--${name} is a number above 0`)
    return value
  }
  return {
    minutes: number('minutes'),
    writers: number('writers'),
    'burst-writers': number('burst-writers'),
    'burst-pause-ms': number('burst-pause-ms'),
    mib: number('mib'),
  }
}

const options = settings()

/** Prints a line that stays above the progress line of a terminal. */
function say(line: string): void {
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[K')
  console.log(line)
}

function progress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`)
}

const mib = (kib: number): string => (kib / KIB_A_MIB).toFixed(0)
const mibOf = (bytes: number): string => mib(bytes / 1024)

/**
 * Watches the processes of the controllers. A controller keeps its number when its process is
 * replaced.
 */
class Watch {
  readonly peaksKib = new Map<number, number>()
  readonly #cluster: TestCluster
  readonly #clients: ReadonlyMap<number, Client>

  constructor(cluster: TestCluster, clients: ReadonlyMap<number, Client>) {
    this.#cluster = cluster
    this.#clients = clients
  }

  /** Records the maximum values. @returns the current memory of the controllers. */
  async look(): Promise<string> {
    const parts = await Promise.all(nodes.map((k) => this.#lookAt(k)))
    return parts.filter((part) => part !== null).join(' | ')
  }

  async #lookAt(k: number): Promise<string | null> {
    const pid = this.#cluster.pid(k)
    const memory = pid === null ? null : processMemory(pid)
    if (memory === null) return null
    this.peaksKib.set(k, Math.max(this.peaksKib.get(k) ?? 0, memory.peakKib))
    const inside = await this.#numbers(k).catch(() => 'does not answer')
    const log = folderBytes(join(this.#cluster.folder, this.#cluster.id(k), 'data', 'wal'))
    const { rssKib, peakKib, anonymousKib } = memory
    return (
      `${this.#cluster.id(k)} rss ${mib(rssKib)} (anonymous ${mib(anonymousKib)}, peak ${mib(peakKib)}) ` +
      `log ${mibOf(log)} ${inside}`
    )
  }

  async #numbers(k: number): Promise<string> {
    const answer = await this.#clients.get(k)?.request('GET', '/metrics', { timeoutMs: 5000 })
    const text = answer?.text ?? ''
    const threads = ['main', 'raft', 'wal'].map((thread) => {
      const of = (kind: string): string =>
        mibOf(metric(text, `flotilla_thread_${kind}_bytes{thread="${thread}"}`))
      return `${thread} ${of('heap_used')}/${of('heap_total')}+${of('external')}`
    })
    const entries = metric(text, 'flotilla_log_kept_entries')
    const bytes = mibOf(metric(text, 'flotilla_log_kept_bytes'))
    const ids = metric(text, 'flotilla_request_ids')
    return `heap+external ${threads.join(', ')}; kept ${entries} entries of ${bytes}; ${ids} ids`
  }
}

const sampleSeconds = SAMPLE_MS / 1000

/** Samples until `isDone` returns true. @throws the error of the load. */
async function watchUntil(
  what: string,
  isDone: () => boolean,
  load: SoakLoad,
  watch: Watch,
): Promise<void> {
  let before = load.counts.written
  let nextMs = performance.now() + SAMPLE_MS
  while (!isDone()) {
    await pause(200)
    load.check()
    const leftMs = nextMs - performance.now()
    progress(`${what}: ${load.counts.written} writes; next sample in ${Math.ceil(leftMs / 1000)} s`)
    if (leftMs > 0) continue
    nextMs += SAMPLE_MS
    const { written, refused, unknown, broken } = load.counts
    const rate = ((written - before) / sampleSeconds).toFixed(0)
    before = written
    const state = await watch.look()
    say(
      `${what} ${rate} writes/s (${written} in all, ${load.bursts} bursts, ${refused} refused, ` +
        `${unknown} unknown, ${broken} broken) | ${state}`,
    )
  }
}

await using cluster = await TestCluster.start()
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => void cluster[Symbol.asyncDispose]().finally(() => process.exit(code)))
}
const clients = new Map<number, Client>()
for (const k of nodes) clients.set(k, await cluster.loggedIn(k))
const watch = new Watch(cluster, clients)
const away = (await cluster.followers())[0] ?? 1
const live = nodes.filter((k) => k !== away)
const session = clients.get(live[0] ?? 1)
if (session === undefined) throw new Error('there is a client of each controller')
const load = await SoakLoad.prepare(
  {
    services: SERVICES,
    writers: options.writers,
    burstWriters: options['burst-writers'],
    burstPauseMs: options['burst-pause-ms'],
  },
  session,
  cluster.admin.ca,
)
say(`${SERVICES} services; all figures in MiB; at the beginning: ${await watch.look()}`)
cluster.kill(away)
say(`${cluster.id(away)} is away`)
const startedAtMs = performance.now()
const endMs = startedAtMs + options.minutes * 60_000
load.start(live.map((k) => cluster.admin.controllers[k - 1] ?? ''))
const elapsed = (): string => `${((performance.now() - startedAtMs) / 60_000).toFixed(1)} min`
await watchUntil('away', () => performance.now() >= endMs, load, watch)
const { written } = load.counts
say(
  `${written} writes in ${elapsed()}: ${((written * 1000) / (performance.now() - startedAtMs)).toFixed(0)}/s`,
)

await load.end()
cluster.run(away)
say(`the load is over, ${cluster.id(away)} comes back`)
let hasCaughtUp = false
const returned = until(
  `${cluster.id(away)} has caught up`,
  async () => {
    const members = await cluster.status(away)
    const own = members.find(({ id }) => id === cluster.id(away))
    const most = Math.max(...members.map(({ applied }) => applied))
    return own !== undefined && own.applied > 0 && most === own.applied
  },
  600_000,
).finally(() => {
  hasCaughtUp = true
})
const returningAtMs = performance.now()
await Promise.all([returned, watchUntil('coming back', () => hasCaughtUp, load, watch)])
const returnedAfterMs = performance.now() - returningAtMs
say(`${cluster.id(away)} was there again after ${(returnedAfterMs / 1000).toFixed(1)} s`)
await until(
  'one digest at one index',
  async () => {
    const statuses = await Promise.all(nodes.map((k) => cluster.status(k)))
    const own = statuses.map((members, at) => members.find(({ id }) => id === cluster.id(at + 1)))
    return new Set(own.map((member) => `${member?.digestIndex} ${member?.digest}`)).size === 1
  },
  120_000,
)
say('the states are equal')
let lost = 0
for (const k of nodes) lost += await load.lost(await cluster.loggedIn(k))
say(`at the end: ${await watch.look()}`)
const most = Math.max(...watch.peaksKib.values())
const peaks = nodes.map((k) => `${cluster.id(k)} ${mib(watch.peaksKib.get(k) ?? 0)}`).join(', ')
const isWithin = most <= options.mib * KIB_A_MIB
say(
  `peaks: ${peaks} MiB, ${isWithin ? 'within' : 'BEYOND'} ${options.mib}; ${lost} writes lost; ${load.counts.written} writes, ` +
    `${load.bursts} bursts, ${load.counts.refused} refused, ${load.counts.unknown} unknown, ${load.counts.broken} broken connections`,
)
process.exitCode = isWithin && lost === 0 ? 0 : 1

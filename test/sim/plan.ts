import type { RetentionOptions } from '../../src/cluster/state-transfer/log-retention.ts'
import type { SnapshotSenderOptions } from '../../src/cluster/state-transfer/snapshot-sender.ts'
import type { WriteBehindLimits } from '../../src/fsm/records/write-behind.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import { type CoreOptions, defaultCoreOptions } from '../../src/raft/options.ts'
import type { CircuitPlan } from './circuits/circuit-plan.ts'

/** Fault rates of one run. Chances are per message, frame or sync; times ms. */
export interface Rates {
  readonly lossChance: number
  /**
   * TCP retransmission: a lost message is sent again after this time, twice as long after each
   * further loss, and later messages wait behind it. Absent: the message is lost.
   */
  readonly resendMs?: number
  readonly repeatChance: number
  readonly lateChance: number
  readonly resetChance: number
  /** 0 by default. */
  readonly delayMsMin?: number
  readonly delayMsMax: number
  readonly syncMsMax: number
  readonly slowDiskChance: number
  readonly storeMsMax: number
  readonly applyMsMax: number
  readonly chunkMsMax: number
}

/** Load by clients and operators. Times ms. */
export interface Load {
  readonly clients: number
  /** Maximum pause between two operations of a client. */
  readonly thinkMsMax: number
  readonly readShare: number
  readonly bodyBytesMax: number
  /**
   * Share of operations with unknown outcome that are retried with the same id at another
   * controller.
   */
  readonly retryShare: number
}

/** Affected controller, drawn when the event is due. */
export type Target = 'leader' | 'follower' | 'any'

export type Misfortune =
  | { readonly type: 'crash'; readonly target: Target; readonly downMs: number }
  /** A power cut occurs at one of the next file system calls. */
  | {
      readonly type: 'crash within a write'
      readonly target: Target
      readonly calls: number
      readonly downMs: number
    }
  | { readonly type: 'crash of all'; readonly downMs: number }
  | { readonly type: 'pause'; readonly target: Target; readonly forMs: number }
  | {
      readonly type: 'partition'
      readonly shape: 'sides' | 'bridge' | 'one-way' | 'half-open' | 'leader'
      readonly forMs: number
    }
  | { readonly type: 'slow link'; readonly extraMs: number; readonly forMs: number }
  | { readonly type: 'clock jump'; readonly target: Target; readonly byMs: number }
  | {
      readonly type: 'damage'
      readonly target: Target
      readonly what: Damage
      readonly downMs: number
    }
  | { readonly type: 'sync failed'; readonly target: Target; readonly downMs: number }
  | { readonly type: 'disk full'; readonly target: Target; readonly forMs: number }
  | {
      readonly type: 'disk slow'
      readonly target: Target
      readonly forMs: number
      readonly syncMs: number
    }
  | { readonly type: 'disk unreadable'; readonly target: Target; readonly forMs: number }
  | { readonly type: 'disk wiped'; readonly target: Target; readonly downMs: number }
  | { readonly type: 'disk rolled back'; readonly target: Target; readonly downMs: number }
  | { readonly type: 'operator'; readonly verb: Verb }
  | { readonly type: 'bad input'; readonly what: BadInput }
  /** An operator creates a backup, and later replaces all records by those of the backup. */
  | {
      readonly type: 'restore'
      /** Time from the backup to its restore, ms. */
      readonly lagMs: number
      readonly blocks: number
      readonly chunksPerBlock: number
      readonly ending: 'swapped' | 'swapped twice' | 'abandoned' | 'left'
      readonly isLeaderKilled: boolean
      /** The backup states that it belongs to another cluster. */
      readonly isOfOther: boolean
    }
  | RouterMisfortune

/**
 * Faults of routers, their links, and their control channels; the affected router is drawn when the
 * event is due.
 */
export type RouterMisfortune =
  | { readonly type: 'router crash'; readonly isSilent: boolean; readonly downMs: number }
  | { readonly type: 'router pause'; readonly forMs: number }
  | { readonly type: 'link cut'; readonly forMs: number }
  | { readonly type: 'link reset' }
  | { readonly type: 'link slow'; readonly extraMs: number; readonly forMs: number }
  | { readonly type: 'control cut'; readonly forMs: number }
  | { readonly type: 'control reset' }

export type Damage =
  | 'bit flipped in the log'
  | 'bit flipped in a meta slot'
  | 'misdirected write'
  | 'segment missing'
  | 'segment cut short'
  | 'state damaged'
  | 'log of another store'
  | 'log of a newer format'

export type Verb =
  | 'add'
  | 'promote'
  | 'demote'
  | 'remove'
  | 'remove leader'
  | 'replace'
  | 'transfer'
  | 'two admins'

export type BadInput =
  | 'frame too large'
  | 'frame of another version'
  | 'hello of another cluster'
  | 'hello of another generation'
  | 'hello of a removed member'
  | 'message from the future'
  | 'snapshot chunk damaged'
  | 'snapshot manifest wrong'

export interface Event {
  readonly atMs: number
  readonly what: Misfortune
  /**
   * Seed for all values drawn when the event is due, so that removing another event changes nothing
   * here.
   */
  readonly salt: number
}

/** All inputs of a run, drawn from its seed. A failing plan is shrunk by removing parts. */
export interface Plan {
  readonly seed: number
  readonly voters: number
  readonly learners: number
  readonly faultyMs: number
  /** Maximum number of steps with faults, which limits the time of a seed. */
  readonly faultySteps: number
  readonly rates: Rates
  readonly load: Load
  readonly events: readonly Event[]
  /** Clock offsets, ms, by the position of the controller. */
  readonly clockOffsetsMs: readonly number[]
  readonly core: CoreOptions
  readonly clusterNode: {
    readonly retention: RetentionOptions
    readonly outstandingMax: number
  }
  readonly snapshots: Partial<SnapshotSenderOptions>
  readonly writeBehind: WriteBehindLimits
  readonly segmentBytes: number
  readonly chunkBytes: number
  /** Whether frames are sent as encoded bytes. */
  readonly isWired: boolean
  /** Null: no routers. */
  readonly circuits: CircuitPlan | null
}

const KIB = 1024
const FAULTY_MS = 8_000
const SPECIAL_EVERY = 10
/** One of this many seeds restores backups; the others never restart the log, as a restore does. */
const RESTORE_EVERY = 5

/**
 * Each kind of fault is absent from some runs, because a constant fault would hide bugs that occur
 * only without it.
 */
export function drawPlan(seed: number): Plan {
  const chance = seededRandom(seed)
  const some = (value: number, share = 0.6): number =>
    chance.next() < share ? value * chance.next() : 0
  const voters = pick(chance, [1, 2, 3, 3, 3, 3, 3, 4, 5, 5])
  const plan: Plan = {
    seed,
    voters,
    learners: chance.next() < 0.2 ? 1 : 0,
    faultyMs: FAULTY_MS,
    faultySteps: 9_000,
    rates: {
      lossChance: some(0.2),
      repeatChance: some(0.2),
      lateChance: some(0.1),
      resetChance: some(0.003),
      delayMsMax: chance.integer(1, 40),
      syncMsMax: chance.integer(1, 30),
      slowDiskChance: some(0.02),
      storeMsMax: chance.integer(1, 300),
      applyMsMax: some(3, 0.3),
      chunkMsMax: chance.integer(0, 60),
    },
    load: {
      clients: chance.integer(2, 5),
      thinkMsMax: pick(chance, [20, 60, 60, 150]),
      readShare: 0.15 + 0.35 * chance.next(),
      bodyBytesMax: pick(chance, [60, 60, 400, 2_000]),
      retryShare: chance.next(),
    },
    events: drawEvents(chance),
    clockOffsetsMs: Array.from({ length: 9 }, () =>
      chance.next() < 0.15 ? chance.integer(-3_600_000, 3_600_000) : chance.integer(-300, 300),
    ),
    core: drawOptions(chance),
    clusterNode: {
      retention: {
        entries: pick(chance, [10, 40, 200, 2_000]),
        bytes: pick(chance, [4 * KIB, 32 * KIB, 1024 * KIB]),
        catchUpBytes: pick(chance, [32 * KIB, 1024 * KIB, 4096 * KIB]),
        everyEntries: pick(chance, [1, 7, 64]),
      },
      outstandingMax: pick(chance, [4, 64, 4_096]),
    },
    snapshots: { windowChunks: chance.integer(1, 8), silenceMsMax: pick(chance, [1_500, 10_000]) },
    writeBehind: drawWriteBehind(chance),
    segmentBytes: pick(chance, [8 * KIB, 8 * KIB, 16 * KIB, 64 * KIB]),
    chunkBytes: pick(chance, [256, 1_024, 8 * KIB]),
    isWired: chance.next() < 0.25,
    circuits: null,
  }
  if (seed % SPECIAL_EVERY === 0) return calm(plan, chance)
  if (seed % SPECIAL_EVERY === SPECIAL_EVERY / 2) return leftBehind(plan, chance)
  return seed % RESTORE_EVERY === RESTORE_EVERY - 1 ? withRestores(plan) : plan
}

const ENDINGS = [
  ...(['swapped', 'swapped', 'swapped', 'swapped twice', 'swapped twice'] as const),
  ...(['abandoned', 'left'] as const),
]

/** Drawn with a separate generator, so that the rest of the plan does not change. */
function withRestores(plan: Plan): Plan {
  const chance = seededRandom(plan.seed ^ 0x7e57)
  const events: Event[] = [...plan.events]
  const add = (atMs: number): void => {
    events.push({
      atMs,
      salt: chance.integer(0, 2 ** 31),
      what: {
        type: 'restore',
        lagMs: chance.integer(0, 1_500),
        blocks: chance.integer(1, 3),
        chunksPerBlock: chance.integer(1, 4),
        ending: pick(chance, ENDINGS),
        isLeaderKilled: chance.next() < 0.3,
        isOfOther: chance.next() < 0.3,
      },
    })
  }
  for (let count = chance.integer(1, 4); count > 0; count -= 1) {
    const atMs = chance.integer(600, FAULTY_MS - 2_500)
    add(atMs)
    if (chance.next() < 0.4) add(atMs + chance.integer(0, 100))
  }
  return { ...plan, events: events.sort((a, b) => a.atMs - b.atMs || a.salt - b.salt) }
}

/**
 * Followers return when the log is short and the state machine is slow: they receive snapshots
 * while leaders and members change.
 */
function leftBehind(plan: Plan, chance: Random): Plan {
  const events: Event[] = plan.events.filter(
    ({ what }) => what.type === 'operator' || what.type === 'crash within a write',
  )
  const add = (what: Misfortune): void => {
    const atMs = chance.integer(500, FAULTY_MS - 1_000)
    events.push({ atMs, what, salt: chance.integer(0, 2 ** 31) })
  }
  for (let count = chance.integer(3, 8); count > 0; count -= 1) {
    add({ type: 'crash', target: 'follower', downMs: pick(chance, [300, 700, 1_500]) })
  }
  for (let count = chance.integer(1, 3); count > 0; count -= 1) {
    add({
      type: 'partition',
      shape: pick(chance, ['leader', 'sides'] as const),
      forMs: pick(chance, [700, 1_500]),
    })
  }
  return {
    ...plan,
    voters: pick(chance, [3, 3, 5]),
    rates: {
      ...plan.rates,
      delayMsMax: 10,
      syncMsMax: 5,
      slowDiskChance: 0,
      applyMsMax: pick(chance, [0, 8, 20]),
    },
    load: { ...plan.load, clients: 5, thinkMsMax: 20, readShare: 0.1 },
    events: events.sort((a, b) => a.atMs - b.atMs || a.salt - b.salt),
    core: defaultCoreOptions,
    clusterNode: {
      ...plan.clusterNode,
      retention: {
        entries: 10,
        bytes: 4 * KIB,
        catchUpBytes: pick(chance, [32 * KIB, 1024 * KIB]),
        everyEntries: 1,
      },
    },
    writeBehind: {
      flushPeriodMs: pick(chance, [20, 200]),
      flushBytes: 512,
      dirtyCharactersMax: pick(chance, [2 * KIB, 4 * KIB, 1024 * KIB]),
    },
  }
}

/** No link and no disk fails at random: a leader that can reach a majority must stay leader. */
function calm(plan: Plan, chance: Random): Plan {
  const events: Event[] = []
  const add = (what: Misfortune): void => {
    const atMs = chance.integer(3_500, FAULTY_MS - 500)
    events.push({ atMs, what, salt: chance.integer(0, 2 ** 31) })
  }
  for (let count = chance.integer(1, 4); count > 0; count -= 1) {
    const shape = pick(chance, ['bridge', 'bridge', 'one-way'] as const)
    add({ type: 'partition', shape, forMs: pick(chance, [700, 1_500, 2_500]) })
  }
  if (chance.next() < 0.6) {
    add({ type: 'disk slow', target: 'leader', forMs: 600, syncMs: chance.integer(800, 2_000) })
  }
  return {
    ...plan,
    voters: pick(chance, [3, 3, 5]),
    rates: {
      ...plan.rates,
      lossChance: 0,
      lateChance: 0,
      resetChance: 0,
      slowDiskChance: 0,
      applyMsMax: 0,
    },
    load: { ...plan.load, thinkMsMax: 60 },
    events: events.sort((a, b) => a.atMs - b.atMs || a.salt - b.salt),
    clockOffsetsMs: plan.clockOffsetsMs.map((offsetMs) => offsetMs % 300),
    core: defaultCoreOptions,
  }
}

function pick<T>(chance: Random, values: readonly T[]): T {
  const value = values[chance.integer(0, values.length - 1)]
  if (value === undefined) throw new Error('there is something to pick from')
  return value
}

/** Draws buffers that are larger than one write, as in production. */
function drawWriteBehind(chance: Random): WriteBehindLimits {
  const flushBytes = pick(chance, [512, 64 * KIB])
  const flushPeriodMs = pick(chance, [20, 200, 1_000])
  return { flushPeriodMs, flushBytes, dirtyCharactersMax: flushBytes * pick(chance, [4, 16]) }
}

/** In most runs, limits so small that the run can reach them; otherwise the default limits. */
function drawOptions(chance: Random): CoreOptions {
  if (chance.next() < 0.3) return defaultCoreOptions
  return {
    ...defaultCoreOptions,
    appendBytesMax: chance.integer(400, 8_000),
    windowBytesMax: chance.integer(400, 32_000),
    windowMessagesMax: chance.integer(1, 12),
    uncommittedBytesMax: chance.integer(4_000, 40_000),
    applyLagEntriesMax: chance.integer(4, 400),
    applyBytesMax: chance.integer(400, 20_000),
    readsMax: chance.integer(1, 20),
    promotionLagEntriesMax: chance.integer(1, 100),
    diskStallTicks: chance.integer(4, 60),
  }
}

/** Draws how often each kind of fault occurs in one run; in many runs a kind does not occur. */
function drawEvents(chance: Random): readonly Event[] {
  const events: Event[] = []
  const add = (max: number, share: number, make: () => Misfortune): void => {
    if (chance.next() >= share) return
    const times = chance.integer(1, max)
    for (let time = 0; time < times; time += 1) {
      const atMs = chance.integer(400, FAULTY_MS - 200)
      events.push({ atMs, what: make(), salt: chance.integer(0, 2 ** 31) })
    }
  }
  const target = (): Target => pick(chance, ['leader', 'leader', 'follower', 'any'])
  const downMs = (): number => pick(chance, [5, 100, 700, 3_000])
  const forMs = (): number => pick(chance, [150, 700, 1_500, 3_500])
  add(10, 0.6, () => ({ type: 'crash', target: target(), downMs: downMs() }))
  add(12, 0.5, () => ({
    type: 'crash within a write',
    target: target(),
    calls: chance.integer(1, 12),
    downMs: downMs(),
  }))
  add(2, 0.15, () => ({ type: 'crash of all', downMs: downMs() }))
  add(4, 0.3, () => ({ type: 'pause', target: target(), forMs: chance.integer(50, 3_000) }))
  add(12, 0.6, () => ({
    type: 'partition',
    shape: pick(chance, ['sides', 'bridge', 'one-way', 'half-open', 'leader']),
    forMs: forMs(),
  }))
  add(3, 0.2, () => ({ type: 'slow link', extraMs: chance.integer(50, 1_000), forMs: forMs() }))
  add(3, 0.15, () => ({
    type: 'clock jump',
    target: target(),
    byMs: pick(chance, [-60_000, -500, 500, 5_000, 3_600_000]),
  }))
  add(5, 0.5, () => ({
    type: 'damage',
    target: pick(chance, ['follower', 'follower', 'any', 'leader']),
    what: pick(chance, DAMAGES),
    downMs: downMs(),
  }))
  add(2, 0.12, () => ({ type: 'sync failed', target: target(), downMs: downMs() }))
  add(2, 0.12, () => ({ type: 'disk full', target: target(), forMs: forMs() }))
  add(3, 0.2, () => ({
    type: 'disk slow',
    target: target(),
    forMs: forMs(),
    syncMs: pick(chance, [50, 400, 2_000]),
  }))
  add(1, 0.08, () => ({ type: 'disk unreadable', target: 'follower', forMs: forMs() }))
  add(2, 0.15, () => ({ type: 'disk wiped', target: 'any', downMs: downMs() }))
  add(4, 0.2, () => ({ type: 'disk rolled back', target: 'any', downMs: downMs() }))
  add(14, 0.6, () => ({ type: 'operator', verb: pick(chance, VERBS) }))
  // A change that is logged but unknown to its majority must be rolled back.
  for (const { atMs, what } of Array.from(events)) {
    if (what.type !== 'operator' || chance.next() < 0.6) continue
    events.push({
      atMs: atMs + chance.integer(0, 250),
      what: { type: 'partition', shape: 'leader', forMs: pick(chance, [700, 1_500, 3_000]) },
      salt: chance.integer(0, 2 ** 31),
    })
  }
  // Uncommitted entries of an old leader must not override, after its return, entries that its
  // successor committed.
  if (chance.next() < 0.25) {
    const forMs = pick(chance, [1_500, 2_500])
    const atMs = chance.integer(1_500, FAULTY_MS - 2 * forMs)
    for (const beginMs of [atMs, atMs + forMs + 1]) {
      const what = { type: 'partition', shape: 'leader', forMs } as const
      events.push({ atMs: beginMs, what, salt: chance.integer(0, 2 ** 31) })
    }
  }
  add(3, 0.3, () => ({ type: 'bad input', what: pick(chance, BAD_INPUTS) }))
  return events.sort((a, b) => a.atMs - b.atMs || a.salt - b.salt)
}

const DAMAGES: readonly Damage[] = [
  'bit flipped in the log',
  'bit flipped in the log',
  'bit flipped in a meta slot',
  'misdirected write',
  'segment missing',
  'segment cut short',
  'state damaged',
  'log of another store',
  'log of a newer format',
]

const VERBS: readonly Verb[] = [
  'add',
  'add',
  'promote',
  'promote',
  'demote',
  'remove',
  'remove leader',
  'replace',
  'transfer',
  'transfer',
  'two admins',
]

const BAD_INPUTS: readonly BadInput[] = [
  'frame too large',
  'frame of another version',
  'hello of another cluster',
  'hello of another generation',
  'hello of a removed member',
  'message from the future',
  'snapshot chunk damaged',
  'snapshot manifest wrong',
]

/** The plan in readable form: values and events, one line each. */
export function describePlan(plan: Plan): string {
  const { seed, voters, learners, rates, load, events } = plan
  const lines = [
    `seed ${seed}: ${voters} voters, ${learners} learners, ${load.clients} clients`,
    `rates ${JSON.stringify(rates)}`,
    ...events.map(({ atMs, what }) => {
      const { type, ...details } = what
      return `${String(atMs).padStart(6)} ms  ${type} ${JSON.stringify(details)}`
    }),
  ]
  return lines.join('\n')
}

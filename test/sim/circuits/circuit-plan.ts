import { type Random, seededRandom } from '../../../src/lib/random.ts'
import { drawPlan, type Event, type Misfortune, type Plan, type Target } from '../plan.ts'
import type { FrameRates } from './frames.ts'

/** Configuration of a run's routers and of their hosts. Times in ms. */
export interface RouterPlan {
  /** Values of the configuration section `forwarder`. */
  readonly forwarder: Readonly<Record<string, number>>
  /** Values of the configuration section `link`. */
  readonly link: Readonly<Record<string, number>>
  /** Options of the circuit endpoints. */
  readonly xgress: Readonly<Record<string, number>>
  readonly hostMsMax: number
  readonly hostRefusesChance: number
}

export interface DialPlan {
  readonly atMs: number
  readonly routerId: string
  readonly serviceId: string
}

/** The routers of a run, and their traffic. */
export interface CircuitPlan extends RouterPlan {
  readonly routerIds: readonly string[]
  /** Pairs of linked routers. */
  readonly edges: readonly (readonly [string, string])[]
  /** Routers that host a service, by service ID. */
  readonly hosts: Readonly<Record<string, readonly string[]>>
  readonly strategy: 'smartrouting' | 'weighted' | 'random'
  readonly frames: FrameRates
  readonly delayMsMax: number
  readonly dials: readonly DialPlan[]
  /** Share of circuit endpoints that send data as long as the traffic lasts. */
  readonly endlessShare: number
  readonly wordsAPieceMax: number
  readonly pauseMsMax: number
  readonly restChance: number
  /**
   * If true, routers and links have no faults, and at most one controller at a time is stopped: no
   * circuit may end.
   */
  readonly isSteady: boolean
}

const FAULTY_MS = 8_000
/**
 * Base for the seeds of plain plans without special features: the last digit of such seeds is 1.
 */
const PLAIN = 10
const KIB = 1024
const STEADY_EVERY = 4

/**
 * Draws a run with routers. Controllers have the usual faults, except those of disks and members,
 * which do not affect circuits.
 */
export function drawCircuitPlan(seed: number): Plan {
  const base = drawPlan(seed * PLAIN + 1)
  const chance = seededRandom(seed ^ 0x0c1c)
  const isSteady = seed % STEADY_EVERY === 0
  const circuits = { ...drawCircuits(chance), isSteady }
  return {
    ...base,
    seed,
    circuits,
    voters: isSteady ? 3 : pick(chance, [1, 3, 3, 3, 3]),
    learners: 0,
    faultyMs: FAULTY_MS,
    faultySteps: 80_000,
    rates: { ...base.rates, applyMsMax: 0, slowDiskChance: 0, storeMsMax: 20 },
    load: { ...base.load, clients: 1, thinkMsMax: 400, bodyBytesMax: 60 },
    events: isSteady ? steadyEvents(chance) : drawEvents(chance),
    clockOffsetsMs: base.clockOffsetsMs.map((offsetMs) => offsetMs % 300),
  }
}

function drawCircuits(chance: Random): Omit<CircuitPlan, 'isSteady'> {
  const some = (value: number): number => (chance.next() < 0.6 ? value * chance.next() : 0)
  const count = chance.integer(2, 5)
  const routerIds = Array.from({ length: count }, (_, at) => `r${at + 1}`)
  const serviceIds = ['echo', 'store']
  const hosts = serviceIds.map((id) => {
    const of = routerIds.filter(() => chance.next() < 0.4)
    return [id, of.length > 0 ? of : [pick(chance, routerIds)]] as const
  })
  const wordsAPieceMax = pick(chance, [4, 60, 300])
  const rxBufferSize = pick(chance, [2 * KIB, 16 * KIB, 4096 * KIB])
  return {
    routerIds,
    edges: drawEdges(chance, routerIds),
    hosts: Object.fromEntries(hosts),
    strategy: pick(chance, ['smartrouting', 'weighted', 'random']),
    frames: { lossChance: some(0.15), repeatChance: some(0.15), lateChance: some(0.15) },
    delayMsMax: chance.integer(1, 30),
    dials: Array.from({ length: chance.integer(3, 12) }, () => ({
      atMs: chance.integer(1_500, FAULTY_MS),
      routerId: pick(chance, routerIds),
      serviceId: pick(chance, serviceIds),
    })).sort((a, b) => a.atMs - b.atMs),
    endlessShare: pick(chance, [0.3, 0.6, 1]),
    wordsAPieceMax,
    pauseMsMax: pick(chance, wordsAPieceMax > 60 ? [150, 400] : [40, 100, 300]),
    restChance: some(0.1),
    hostMsMax: pick(chance, [5, 50, 500]),
    hostRefusesChance: some(0.2),
    forwarder: {
      faultTxInterval: pick(chance, [200, 700]),
      idleCircuitTimeout: pick(chance, [1_500, 4_000]),
      idleTxInterval: pick(chance, [500, 1_500]),
      xgressCloseCheckInterval: pick(chance, [100, 1_000]),
    },
    link: {
      payloadSenderQueueSize: pick(chance, [1, 4, 128]),
      ackSenderQueueSize: pick(chance, [1, 64]),
    },
    xgress: {
      rxBufferSize,
      txPortalMaxSize: rxBufferSize,
      txPortalMinSize: KIB,
      txPortalStartSize: pick(chance, [KIB, rxBufferSize]),
      txQueueSize: pick(chance, [1, 4, 16]),
      mtu: pick(chance, [0, 0, wordsAPieceMax]),
      retxStartMs: pick(chance, [50, 200]),
      retxMaxMs: 1_000,
      circuitStartTimeout: 3_000,
      maxCloseWaitMs: pick(chance, [3_000, 8_000]),
    },
  }
}

/**
 * A ring, so that another path exists when one link is cut, and some additional links across it.
 */
function drawEdges(chance: Random, ids: readonly string[]): readonly (readonly [string, string])[] {
  const edges = new Map<string, readonly [string, string]>()
  for (const [at, id] of ids.entries()) {
    for (const [place, other] of ids.entries()) {
      if (place <= at) continue
      const isRing = place === at + 1 || (at === 0 && place === ids.length - 1)
      if (isRing || chance.next() < 0.25) edges.set(`${id}|${other}`, [id, other])
    }
  }
  return [...edges.values()]
}

function drawEvents(chance: Random): readonly Event[] {
  const events: Event[] = []
  const add = (max: number, share: number, make: () => Misfortune): void => {
    if (chance.next() >= share) return
    for (let left = chance.integer(1, max); left > 0; left -= 1) {
      const atMs = chance.integer(1_500, FAULTY_MS - 200)
      events.push({ atMs, what: make(), salt: chance.integer(0, 2 ** 31) })
    }
  }
  const target = (): Target => pick(chance, ['leader', 'leader', 'follower', 'any'])
  const forMs = (): number => pick(chance, [150, 700, 2_000, 5_000])
  add(3, 0.5, () => ({ type: 'crash', target: target(), downMs: pick(chance, [5, 700, 3_000]) }))
  add(1, 0.1, () => ({ type: 'crash of all', downMs: pick(chance, [100, 2_000]) }))
  add(2, 0.2, () => ({ type: 'pause', target: target(), forMs: chance.integer(50, 3_000) }))
  add(2, 0.3, () => ({
    type: 'partition',
    shape: pick(chance, ['sides', 'bridge', 'leader'] as const),
    forMs: pick(chance, [700, 2_000]),
  }))
  add(2, 0.3, () => ({ type: 'operator', verb: 'transfer' }))
  add(2, 0.4, () => ({
    type: 'router crash',
    isSilent: chance.next() < 0.3,
    downMs: pick(chance, [5, 700, 3_000, 20_000]),
  }))
  add(2, 0.3, () => ({ type: 'router pause', forMs: chance.integer(50, 5_000) }))
  add(4, 0.6, () => ({ type: 'link cut', forMs: forMs() }))
  add(4, 0.5, () => ({ type: 'link reset' }))
  add(2, 0.3, () => ({ type: 'link slow', extraMs: chance.integer(50, 800), forMs: forMs() }))
  add(3, 0.4, () => ({ type: 'control cut', forMs: forMs() }))
  add(6, 0.5, () => ({ type: 'control reset' }))
  return events.sort((a, b) => a.atMs - b.atMs || a.salt - b.salt)
}

/**
 * Leadership changes; and events in which a controller dies, stalls, or is cut off from the others.
 */
function steadyEvents(chance: Random): readonly Event[] {
  const at = (what: Misfortune, fromMs: number, toMs: number): Event => {
    return { atMs: chance.integer(fromMs, toMs), what, salt: chance.integer(0, 2 ** 31) }
  }
  const transfer: Misfortune = { type: 'operator', verb: 'transfer' }
  const crash: Misfortune = {
    type: 'crash',
    target: pick(chance, ['leader', 'any']),
    downMs: pick(chance, [50, 3_000, 10_000]),
  }
  const pause: Misfortune = { type: 'pause', target: 'any', forMs: chance.integer(50, 3_000) }
  const partition: Misfortune = { type: 'partition', shape: 'leader', forMs: 1_500 }
  return [
    at(transfer, 1_500, 3_000),
    at(pick(chance, [transfer, pause, partition]), 1_500, 3_500),
    at(crash, 5_500, FAULTY_MS - 200),
  ].sort((a, b) => a.atMs - b.atMs || a.salt - b.salt)
}

function pick<T>(chance: Random, values: readonly T[]): T {
  const value = values[chance.integer(0, values.length - 1)]
  if (value === undefined) throw new Error('there is something to pick from')
  return value
}

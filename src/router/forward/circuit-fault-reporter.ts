import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { forwardLimits } from './limits.ts'
import { linkLimits } from '../links/limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { CarriedCircuit, CarriedCircuits, FramePeer } from './carried-circuits.ts'
import {
  circuitConfirmationMessage,
  fabricFaultMessage,
  type IdleCircuit,
} from '../../channel/messages/circuits.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

interface CircuitFaultReporterDeps {
  readonly circuits: CarriedCircuits
  readonly clock: Clock
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  readonly config: {
    /** Interval of reports about frames without a next hop; 0: such frames are not reported. */
    readonly faultTxInterval: number
    /** Interval of checks for idle circuits; 0: no checks. */
    readonly idleTxInterval: number
    readonly idleCircuitTimeout: number
  }
  /** Whether a frame from this source has a next hop now. */
  readonly isPassable: (circuitId: string, from: FramePeer) => boolean
  /** Called for an idle or closed circuit whose owner has been disconnected for too long. */
  readonly onAbandoned: (circuit: CarriedCircuit) => void
}

/** A source of frames that had no next hop, with their circuit. */
interface Miss {
  readonly circuitId: string
  readonly from: FramePeer
}

/**
 * Reports faults of circuits to controllers: frames without a next hop, endpoints that have closed,
 * and idle circuits. If a controller is disconnected, its reports are built from the state of the
 * circuits when it connects again, so they need no queue.
 */
export class CircuitFaultReporter {
  readonly #deps: CircuitFaultReporterDeps
  /** Sources of frames without a next hop since the last report, by circuit. */
  readonly #misses = new Map<string, Miss>()
  /** Sources of frames share the maximum size of `#misses` fairly. */
  readonly #room = new FairShare(forwardLimits.missesMax)
  readonly #warnings: KeyedTokenBuckets
  readonly #linkFaults: KeyedTokenBuckets
  readonly #stopTimers: (() => void)[] = []
  #missed = 0

  constructor(deps: CircuitFaultReporterDeps) {
    this.#deps = deps
    const { peersMax } = linkLimits
    const { circuitWarningEveryMs } = forwardLimits
    const rate = { burst: 1, perSecond: 1000 / circuitWarningEveryMs, keysMax: peersMax }
    this.#warnings = new KeyedTokenBuckets(rate, deps.clock)
    this.#linkFaults = new KeyedTokenBuckets(rate, deps.clock)
  }

  /** Number of frames without a next hop since the start. */
  get missed(): number {
    return this.#missed
  }

  start(): void {
    const { faultTxInterval, idleTxInterval } = this.#deps.config
    if (faultTxInterval > 0) {
      this.#stopTimers.push(periodicScheduler.every(faultTxInterval, () => this.#reportMisses()))
    }
    if (idleTxInterval > 0) {
      this.#stopTimers.push(periodicScheduler.every(idleTxInterval, () => this.#askAboutIdle()))
    }
  }

  stop(): void {
    for (const stop of this.#stopTimers.splice(0)) stop()
  }

  /**
   * Records that a frame from this source had no next hop. The report makes a controller reroute
   * the circuit or end it.
   */
  miss(circuitId: string, from: FramePeer): void {
    this.#missed += 1
    const { log, config } = this.#deps
    if (from.peerId !== null && this.#warnings.take(from.peerId)) {
      const fields = { routerId: from.peerId, linkId: from.address, circuitId }
      log.warn(fields, 'frames of a circuit that was not routed here are dropped')
    }
    if (config.faultTxInterval === 0 || this.#misses.has(circuitId)) return
    // @guard circuits-at-a-router--bound
    if (!this.#room.hasRoomFor(from.address)) return
    this.#room.take(from.address)
    this.#misses.set(circuitId, { circuitId, from })
  }

  /** Counts a frame without a circuit ID. It is only logged: a report would need a circuit. */
  unreadable({ address, peerId }: FramePeer): void {
    this.#missed += 1
    if (peerId !== null && this.#warnings.take(peerId)) {
      const fields = { routerId: peerId, linkId: address }
      this.#deps.log.warn(fields, 'frames that name no circuit are dropped')
    }
  }

  /** Called when an endpoint in this router or in one of its clients has closed its circuit. */
  ended(circuit: CarriedCircuit): void {
    const owner = this.#deps.connections().find(({ id }) => id === circuit.ownerId)
    if (owner !== undefined) reportEnded(owner, circuit)
  }

  /** Called when a controller routed a circuit over a link that does not exist. */
  invalidLink(linkId: string): void {
    if (!this.#linkFaults.take(linkId)) return
    for (const { channel } of this.#deps.connections()) {
      channel.send(fabricFaultMessage('link', [linkId]))
    }
  }

  /** Sends a controller that has reconnected the reports of the time without a connection. */
  onConnected(connection: ControlConnection): void {
    for (const circuit of this.#deps.circuits.all()) {
      if (circuit.ownerId === connection.id) reportEnded(connection, circuit)
    }
    if (this.#deps.config.idleTxInterval > 0) this.#askAboutIdle(connection)
  }

  #reportMisses(): void {
    const { circuits, isPassable, connections } = this.#deps
    const present = connections()
    const presentIds = new Set(present.map(({ id }) => id))
    const told = new ByOwner<string>()
    for (const { circuitId, from } of Array.from(this.#misses.values())) {
      const circuit = circuits.get(circuitId)
      const isKept = circuit === undefined ? present.length === 0 : !presentIds.has(circuit.ownerId)
      // True if no report is needed: the circuit has a route for these frames now, or is closed.
      const isSettled = isPassable(circuitId, from) || (circuit?.closedBy ?? null) !== null
      if (isKept && !isSettled) continue
      this.#room.giveBack(from.address)
      this.#misses.delete(circuitId)
      if (!isSettled) told.add(circuit?.ownerId ?? NOBODY, circuitId)
    }
    for (const connection of present) {
      const own = told.of(connection.id)
      sendInParts(connection, own, (ids) => fabricFaultMessage('forward', ids))
      sendInParts(connection, told.of(NOBODY), (ids) => fabricFaultMessage('unknownOwner', ids))
    }
  }

  /** @param only the controller to ask about idle circuits; absent: all connected controllers. */
  #askAboutIdle(only?: ControlConnection): void {
    const { circuits, clock, config, connections, onAbandoned } = this.#deps
    const nowMs = clock.monotonicMs()
    const asked = new Map((only === undefined ? connections() : [only]).map((one) => [one.id, one]))
    const idle = new ByOwner<IdleCircuit>()
    const abandoned: CarriedCircuit[] = []
    for (const circuit of circuits.all()) {
      const idleMs = nowMs - circuit.activeMs
      // A closed circuit is included even if it is not idle, because frames from the other endpoint
      // can keep it active.
      if (circuit.closedBy === null && idleMs <= config.idleCircuitTimeout) continue
      const owner = asked.get(circuit.ownerId)
      if (owner === undefined) {
        if (only === undefined && this.#isAbandoned(circuit, nowMs)) abandoned.push(circuit)
        continue
      }
      circuit.ownerSeenMs = nowMs
      if (circuit.closedBy === null) idle.add(owner.id, { id: circuit.id, idleMs })
      else if (only === undefined) reportEnded(owner, circuit)
    }
    for (const owner of asked.values()) {
      sendInParts(owner, idle.of(owner.id), circuitConfirmationMessage)
    }
    for (const circuit of abandoned) onAbandoned(circuit)
  }

  /**
   * Whether to remove the circuit without asking its owner: if the owner was removed from the
   * cluster, no controller will unroute the circuit.
   */
  #isAbandoned({ ownerSeenMs, activeMs, closedBy }: CarriedCircuit, nowMs: number): boolean {
    const awayMs = nowMs - Math.max(activeMs, ownerSeenMs)
    const { abandonedMsMax, closedAbandonedMsMax } = forwardLimits
    return awayMs > (closedBy === null ? abandonedMsMax : closedAbandonedMsMax)
  }
}

/** Owner ID for circuits that this router does not know; no controller has this ID. */
const NOBODY = ''

/** Groups circuits by owner, for one message to each controller. */
class ByOwner<T> {
  readonly #items = new Map<string, T[]>()

  of(ownerId: string): readonly T[] {
    return this.#items.get(ownerId) ?? []
  }

  add(ownerId: string, what: T): void {
    const told = this.#items.get(ownerId)
    if (told === undefined) this.#items.set(ownerId, [what])
    else told.push(what)
  }
}

function reportEnded({ channel }: ControlConnection, { id, closedBy }: CarriedCircuit): void {
  if (closedBy !== null) channel.send(fabricFaultMessage(closedBy, [id]))
}

function sendInParts<T>(
  { channel }: ControlConnection,
  told: readonly T[],
  messageOf: (part: readonly T[]) => ReturnType<typeof fabricFaultMessage>,
): void {
  const { circuitsPerMessageMax } = forwardLimits
  for (let at = 0; at < told.length; at += circuitsPerMessageMax) {
    channel.send(messageOf(told.slice(at, at + circuitsPerMessageMax)))
  }
}

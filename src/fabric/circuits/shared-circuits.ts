import type { Clock } from '../../lib/clock.ts'
import type { OpenSoftTopic } from '../../ports/soft-topics.ts'
import { routerLimits } from '../limits.ts'
import type { RouterLogger } from '../router-channels.ts'
import { NO_SERVICE_SESSION } from './admit-dial.ts'
import { decodeCircuit, encodeCircuit } from './circuit-codec.ts'
import type { Circuit, CircuitTable } from './circuit-table.ts'

const { circuitsOrphanedMax, circuitOrphanMsMax, circuitClaimPublishedMs } = routerLimits
/**
 * Maximum number of circuits for which this controller becomes the owner before other work runs.
 */
const SLICE = 100
const WARNED_EVERY_MS = 60_000

export interface SharedCircuitsDeps {
  readonly selfId: string
  readonly topic: OpenSoftTopic<'circuits'>
  readonly table: CircuitTable
  /** IDs of the controllers that can own circuits now, according to this controller. */
  readonly controllers: () => Iterable<string>
  /** False while this controller may be separated from the majority. */
  readonly isInQuorum: () => boolean
  readonly isSessionOver: (sessionId: string) => boolean
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: RouterLogger
}

/** A circuit whose owner has failed. */
interface Orphan {
  /** The failed controller that owned the circuit. */
  readonly ownerId: string
  readonly record: Uint8Array
  /** Monotonic ms. */
  readonly sinceMs: number
}

/**
 * A circuit of which this controller has become the owner. The previous owner may not know this
 * yet.
 */
interface Claimed {
  /** Monotonic ms. */
  readonly atMs: number
  readonly turn: number
}

/**
 * The circuits that all controllers publish to each other. Each circuit has one owner. If the owner
 * fails, the next controller in the order of IDs becomes the owner, unless a router on the path
 * reports the circuit to another controller first. If two controllers consider themselves the
 * owner, for example after a partition, the one with the higher number of takeovers wins; for equal
 * numbers, the one with the smaller ID.
 */
export class SharedCircuits {
  readonly #deps: SharedCircuitsDeps
  readonly #orphans = new Map<string, Orphan>()
  /**
   * Circuits of which this controller has recently become the owner because a router asked about
   * them, including those that have ended since.
   */
  readonly #claimed = new Map<string, Claimed>()
  #isTakingOver = false
  #warnedMs = -Infinity
  /**
   * Called for each circuit that this controller has taken over and added to its table, except a
   * circuit with an ended endpoint.
   */
  onTakenOver: (circuit: Circuit) => void = () => undefined
  /**
   * Called when another controller also claims to own a circuit, and this controller stays its
   * owner.
   */
  onContested: (circuit: Circuit) => void = () => undefined

  constructor(deps: SharedCircuitsDeps) {
    const { table, topic } = deps
    this.#deps = deps
    table.follow({
      onKept: (circuit) => this.#publish(circuit),
      onDropped: (id) => this.#onDropped(id),
    })
    topic.onChange((ownerId, id, record, lost) => {
      if (record !== undefined) this.#onRecord(ownerId, id, record)
      else if (lost !== undefined) this.#onLost(ownerId, id, lost)
      else this.#orphans.delete(id)
    })
  }

  /** Number of circuits without an owner, as far as this controller knows. */
  get orphaned(): number {
    return this.#orphans.size
  }

  /**
   * Makes this controller the owner of a circuit because a router on its path reports to it, for
   * example because it was the owner before a restart.
   * @param hasEnded true if one endpoint is gone, so that no routes are sent.
   * @returns undefined if no controller knows the circuit, the router is not on its path, the
   * circuit table is full, or the takeover has ended the circuit.
   */
  claim(routerId: string, id: string, hasEnded = false): Circuit | undefined {
    const record = this.#recordOf(id)
    const circuit = record === undefined ? null : readRecord(id, record)
    // @guard circuits-taken-over--claim
    if (circuit?.path.routerIds.includes(routerId) !== true) return undefined
    // @guard 52-heir-takes-nothing-over:1
    const own = this.#take(circuit)
    if (own === null) return undefined
    // Deleted first, so that the map stays in the order of the times.
    this.#claimed.delete(id)
    this.#claimed.set(id, { atMs: this.#deps.clock.monotonicMs(), turn: own.turn })
    if (!hasEnded) this.onTakenOver(own)
    return this.#deps.table.kept(id)
  }

  /**
   * Whether another controller owns a circuit with this ID, or a controller that failed owned it
   * and no controller has taken it over yet.
   */
  isKnown(id: string): boolean {
    return this.#recordOf(id) !== undefined
  }

  /** Whether the client's session has ended, for example while the circuit had no owner. */
  isOver({ live: { sessionId } }: Circuit): boolean {
    // @guard circuits-taken-over--session
    return sessionId !== NO_SERVICE_SESSION && this.#deps.isSessionOver(sessionId)
  }

  /**
   * Called when a circuit has ended. If this controller became its owner recently, the record stays
   * published for a while: otherwise the previous owner might never receive it, and would keep the
   * circuit.
   */
  #onDropped(id: string): void {
    if (!this.#claimed.has(id)) this.#deps.topic.withdraw(id)
  }

  #withdrawOldClaims(): void {
    for (const [id, { atMs }] of this.#claimed) {
      if (this.#deps.clock.monotonicMs() - atMs < circuitClaimPublishedMs) break
      this.#forgetClaim(id)
    }
  }

  /** Withdraws the record of the circuit if it has ended. */
  #forgetClaim(id: string): void {
    if (this.#claimed.delete(id) && this.#deps.table.kept(id) === undefined) {
      this.#deps.topic.withdraw(id)
    }
  }

  /**
   * Takes over the circuits without an owner for which this controller is next in the order of IDs.
   */
  sweep(): void {
    this.#withdrawOldClaims()
    if (this.#orphans.size === 0 || this.#isTakingOver || !this.#deps.isInQuorum()) return
    void this.#takeOver()
  }

  async #takeOver(): Promise<void> {
    const { controllers, selfId, clock } = this.#deps
    this.#isTakingOver = true
    const heirs = new Heirs(controllers())
    let taken = 0
    for (const [id, { ownerId, record, sinceMs }] of this.#orphans) {
      if (heirs.of(ownerId) === selfId) {
        const circuit = readRecord(id, record)
        this.#orphans.delete(id)
        // @guard 52-heir-takes-nothing-over:2
        const own = circuit === null ? null : this.#take(circuit)
        if (own !== null) this.onTakenOver(own)
        taken += 1
        if (taken % SLICE === 0) await new Promise((go) => setImmediate(go))
      } else if (clock.monotonicMs() - sinceMs > circuitOrphanMsMax) this.#orphans.delete(id)
    }
    this.#isTakingOver = false
  }

  /**
   * Adds the circuit to the table as its new owner.
   * @returns null if the table is full.
   */
  #take(circuit: Circuit): Circuit | null {
    const { id } = circuit.ends
    this.#orphans.delete(id)
    const own = { ...circuit, turn: circuit.turn + 1 }
    return this.#deps.table.set(id, own) ? own : null
  }

  #recordOf(id: string): Uint8Array | undefined {
    const { controllers, selfId, topic } = this.#deps
    const orphan = this.#orphans.get(id)
    if (orphan !== undefined) return orphan.record
    for (const controllerId of controllers()) {
      const record = controllerId === selfId ? undefined : topic.get(controllerId, id)
      if (record !== undefined) return record
    }
    return undefined
  }

  #publish(circuit: Circuit): void {
    const { topic, clock, log } = this.#deps
    if (topic.publish(circuit.ends.id, encodeCircuit(circuit))) return
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#warnedMs < WARNED_EVERY_MS) return
    this.#warnedMs = nowMs
    log.warn({}, 'too many circuits; other controllers will not answer for all of them')
  }

  #onRecord(ownerId: string, id: string, record: Uint8Array): void {
    const { selfId, table } = this.#deps
    this.#orphans.delete(id)
    const own = table.kept(id)
    const turn = own?.turn ?? this.#claimed.get(id)?.turn
    const theirs = turn === undefined ? null : readRecord(id, record)
    if (turn === undefined || theirs === null) return
    const isTheirs = theirs.turn > turn || (theirs.turn === turn && ownerId < selfId)
    if (isTheirs) {
      table.drop(id)
      this.#forgetClaim(id)
    } else if (own !== undefined) this.onContested(own)
  }

  #onLost(ownerId: string, id: string, record: Uint8Array): void {
    const { table, clock } = this.#deps
    if (table.kept(id) !== undefined || this.#recordOf(id) !== undefined) return
    // @guard circuits-taken-over--many
    if (this.#orphans.size >= circuitsOrphanedMax) return
    this.#orphans.set(id, { ownerId, record, sinceMs: clock.monotonicMs() })
  }
}

/**
 * Determines the new owner of a circuit: the next controller after the old owner in the order of
 * IDs; after the last ID, the first one.
 */
class Heirs {
  readonly #ids: readonly string[]

  constructor(ids: Iterable<string>) {
    this.#ids = [...ids].sort()
  }

  of(ownerId: string): string | undefined {
    const others = this.#ids.filter((id) => id !== ownerId)
    return others.find((id) => id > ownerId) ?? others[0]
  }
}

/** Decodes a record that another controller published; null if the record is invalid. */
function readRecord(id: string, record: Uint8Array): Circuit | null {
  try {
    return decodeCircuit(id, record)
  } catch {
    return null
  }
}

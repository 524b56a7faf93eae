import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { SoftReachSchema } from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { SOFT_STATE_BARRIER_MS_MAX } from '../../ports/soft-state.ts'
import type { NodeId } from '../../raft/types.ts'
import { toSafeInteger } from '../message-codec.ts'
import type { PeerChannel } from '../peer-channel.ts'

export interface SoftStateBarrierDeps {
  readonly peers: Pick<PeerChannel, 'note' | 'onNote' | 'onLink' | 'readyPeers'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly members: () => readonly NodeId[]
  /** Immediately sends a peer its next batch of changes. */
  readonly flush: (peer: NodeId) => void
  /** Whether all changes were sent to a peer. */
  readonly isUpToDate: (peer: NodeId) => boolean
  /** Minimum time between the beginnings of two rounds. */
  readonly roundMsMin: number
}

interface Round {
  readonly number: number
  /** Peers that have not responded to the round yet. */
  readonly missing: Set<NodeId>
  readonly finish: () => void
}

const REACH_TOPIC = 'soft-reach'
const REACHED_TOPIC = 'soft-reached'

/**
 * Makes all connected members send the values that they have not sent yet, in rounds. A peer
 * responds after it has sent them, and notes arrive in order. A round ends after
 * `SOFT_STATE_BARRIER_MS_MAX` even if a peer does not respond. Callers share rounds, so more
 * callers do not cause more rounds.
 */
export class SoftStateBarrier {
  readonly #deps: SoftStateBarrierDeps
  /**
   * For each peer, the latest round that the peer has requested and that this controller has not
   * answered yet.
   */
  readonly #owed = new Map<NodeId, number>()
  #rounds = 0
  #beganMs = -Infinity
  #round: Round | null = null
  #current: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null

  constructor(deps: SoftStateBarrierDeps) {
    const { peers } = deps
    this.#deps = deps
    peers.onNote(REACH_TOPIC, (from, payload) => this.#onReach(from, payload))
    peers.onNote(REACHED_TOPIC, (from, payload) => this.#onReached(from, payload))
    peers.onLink((peer, isReady) => {
      if (isReady) return
      this.#owed.delete(peer)
      this.#settle(peer)
    })
  }

  /**
   * Resolves at the end of a round that begins after this call. A round in progress does not
   * suffice, because it may have reached a peer before the caller's value existed.
   */
  reach(): Promise<void> {
    this.#next ??= this.#afterCurrent()
    return this.#next
  }

  /**
   * Responds to each peer that has requested it, once this controller has sent all its values to
   * the peer.
   */
  answer(): void {
    const { peers, isUpToDate } = this.#deps
    for (const [peer, round] of this.#owed) {
      if (!isUpToDate(peer)) continue
      this.#owed.delete(peer)
      peers.note(peer, REACHED_TOPIC, encoded(round))
    }
  }

  stop(): void {
    this.#round?.finish()
  }

  async #afterCurrent(): Promise<void> {
    await this.#current
    const { clock, roundMsMin } = this.#deps
    const waitMs = this.#beganMs + roundMsMin - clock.monotonicMs()
    if (waitMs > 0) await new Promise((go) => setTimeout(go, waitMs))
    this.#beganMs = clock.monotonicMs()
    this.#next = null
    this.#current = this.#run()
    await this.#current
  }

  async #run(): Promise<void> {
    const { peers, members } = this.#deps
    const ready = new Set(peers.readyPeers())
    const missing = new Set(members().filter((id) => ready.has(id)))
    if (missing.size === 0) return
    this.#rounds += 1
    const number = this.#rounds
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#round = { number, missing, finish: resolve }
    const timer = setTimeout(resolve, SOFT_STATE_BARRIER_MS_MAX)
    for (const peer of missing) peers.note(peer, REACH_TOPIC, encoded(number))
    await promise
    clearTimeout(timer)
    this.#round = null
  }

  #onReach(from: NodeId, payload: Uint8Array): void {
    const round = this.#decoded(from, payload)
    if (round === null) return
    this.#owed.set(from, round)
    this.#deps.flush(from)
    this.answer()
  }

  #onReached(from: NodeId, payload: Uint8Array): void {
    if (this.#decoded(from, payload) === this.#round?.number) this.#settle(from)
  }

  #settle(peer: NodeId): void {
    if (this.#round === null) return
    this.#round.missing.delete(peer)
    if (this.#round.missing.size === 0) this.#round.finish()
  }

  /**
   * Number of the round in a received message; null for a malformed message, and for one whose
   * sender is not a member.
   */
  #decoded(from: NodeId, payload: Uint8Array): number | null {
    if (!this.#deps.members().includes(from)) return null
    try {
      return toSafeInteger(fromBinary(SoftReachSchema, payload).round)
    } catch {
      return null
    }
  }
}

function encoded(round: number): Uint8Array {
  return toBinary(SoftReachSchema, create(SoftReachSchema, { round: BigInt(round) }))
}

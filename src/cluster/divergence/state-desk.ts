import { createHash } from 'node:crypto'
import type { Hash } from 'node:crypto'

import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { Machine } from '../../ports/machine.ts'
import type { PeerCaller, PeerChannel } from '../../ports/peer-channel.ts'
import type { StoreSnapshot } from '../../ports/state-store.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import { countIn, decodeMessage, encodeMessage } from '../membership/messages.ts'

export const DIGEST_METHOD = 'state.digest'
export const SNAPSHOT_METHOD = 'state.snapshot'
export const PIECE_METHOD = 'state.piece'

export const stateDeskLimits = {
  /** Snapshots held open for members that rebuild their state; one a member. */
  snapshotsMax: 2,
  /** One that nobody has read from for so long is closed. */
  idleMsMax: 30_000,
  /** How long a member that is behind may take to reach the index asked for. */
  reachMsMax: 2000,
  pieceBytesMax: 128 * 1024,
} as const

/** Before the bytes of a piece: 1 for the last one, which then has the SHA-256 of them all before its bytes. */
export const PIECE_HEAD_BYTES = 1
export const SHA256_BYTES = 32

export interface StateDeskParts {
  readonly peers: PeerChannel
  readonly machine: Machine
  readonly clock: Clock
  /** This controller's own digest at an index; null: not known. */
  readonly digestAt: (index: Index) => string | null
  /** Its own state is not to be trusted. */
  readonly isOut: () => boolean
}

interface Piece {
  readonly data: Uint8Array
  readonly isLast: boolean
}

interface Lending {
  readonly id: number
  readonly to: NodeId
  readonly snapshot: StoreSnapshot
  readonly pieces: AsyncGenerator<Piece, void>
  readonly hash: Hash
  next: number
  isReading: boolean
  usedMs: number
}

/** What this controller tells of its state to members that compare theirs with it, or take it over. */
export class StateDesk {
  readonly #parts: StateDeskParts
  readonly #lendings = new Map<number, Lending>()
  #opening = 0
  #nextId = 1

  constructor(parts: StateDeskParts) {
    this.#parts = parts
    const { peers } = parts
    peers.serve(DIGEST_METHOD, 'members', (_caller, payload) => this.#digest(payload))
    peers.serve(SNAPSHOT_METHOD, 'members', (caller, payload) => this.#open(caller, payload))
    peers.serve(PIECE_METHOD, 'members', (caller, payload) => this.#read(caller, payload))
    peers.onLink((peer, isReady) => {
      if (!isReady) this.#endOf(peer)
    })
  }

  /** Called now and then. */
  sweep(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    for (const lending of [...this.#lendings.values()]) {
      if (nowMs - lending.usedMs > stateDeskLimits.idleMsMax) this.#end(lending)
    }
  }

  /** The state that is being read is about to go, or is not to be trusted. */
  endAll(): void {
    for (const lending of [...this.#lendings.values()]) this.#end(lending)
  }

  #digest(payload: Uint8Array): Promise<Uint8Array> {
    this.#refuseWhenOut()
    const index = countIn(decodeMessage(payload), 'index')
    return Promise.resolve(encodeMessage({ digest: this.#parts.digestAt(index) ?? '' }))
  }

  async #open({ id: to }: PeerCaller, payload: Uint8Array): Promise<Uint8Array> {
    const index = countIn(decodeMessage(payload), 'index')
    this.#endOf(to)
    const { snapshotsMax, reachMsMax } = stateDeskLimits
    if (this.#lendings.size + this.#opening >= snapshotsMax) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    this.#opening += 1
    try {
      const { machine } = this.#parts
      if (!(await machine.waitForApplied(index, reachMsMax))) throw new Problem('INDEX_NOT_REACHED')
      this.#refuseWhenOut()
      const snapshot = await machine.snapshot()
      const { position } = snapshot.mark
      if (position.index < index || this.#parts.isOut()) {
        await snapshot.close()
        throw new Problem(position.index < index ? 'INDEX_NOT_REACHED' : 'NODE_QUARANTINED')
      }
      return encodeMessage({ id: this.#lend(to, snapshot), ...position })
    } finally {
      this.#opening -= 1
    }
  }

  #lend(to: NodeId, snapshot: StoreSnapshot): number {
    const id = this.#nextId
    this.#nextId += 1
    this.#lendings.set(id, {
      id,
      to,
      snapshot,
      pieces: piecesOf(snapshot),
      hash: createHash('sha256'),
      next: 0,
      isReading: false,
      usedMs: this.#parts.clock.monotonicMs(),
    })
    return id
  }

  async #read(caller: PeerCaller, payload: Uint8Array): Promise<Uint8Array> {
    const message = decodeMessage(payload)
    const lending = this.#lendings.get(countIn(message, 'id'))
    if (lending?.to !== caller.id) throw new Problem('NOT_FOUND')
    if (lending.isReading || countIn(message, 'number') !== lending.next) {
      throw new Problem('COULD_NOT_VALIDATE', { detail: 'pieces are read one after the other' })
    }
    lending.isReading = true
    lending.usedMs = this.#parts.clock.monotonicMs()
    try {
      const { value: piece } = await lending.pieces.next()
      if (piece === undefined || !this.#lendings.has(lending.id)) throw new Problem('NOT_FOUND')
      lending.next += 1
      lending.hash.update(piece.data)
      if (!piece.isLast) return Buffer.concat([Uint8Array.of(0), piece.data])
      this.#lendings.delete(lending.id)
      return Buffer.concat([Uint8Array.of(1), lending.hash.digest(), piece.data])
    } finally {
      lending.isReading = false
      if (!this.#lendings.has(lending.id)) void close(lending)
    }
  }

  #refuseWhenOut(): void {
    if (this.#parts.isOut()) throw new Problem('NODE_QUARANTINED')
  }

  #endOf(peer: NodeId): void {
    for (const lending of [...this.#lendings.values()]) {
      if (lending.to === peer) this.#end(lending)
    }
  }

  #end(lending: Lending): void {
    this.#lendings.delete(lending.id)
    // While it is read, the reader closes it.
    if (!lending.isReading) void close(lending)
  }
}

/** One piece is held back until the next is known, so that the last can be marked as such. */
async function* piecesOf(snapshot: StoreSnapshot): AsyncGenerator<Piece, void> {
  const { pieceBytesMax } = stateDeskLimits
  let held = new Uint8Array(0)
  let isFirst = true
  for await (const chunk of snapshot.chunks()) {
    for (let at = 0; at < chunk.length; at += pieceBytesMax) {
      if (!isFirst) yield { data: held, isLast: false }
      isFirst = false
      // A copy: the chunk may be a view of bytes that are not ours to keep.
      held = Uint8Array.from(chunk.subarray(at, at + pieceBytesMax))
    }
  }
  yield { data: held, isLast: true }
}

async function close({ pieces, snapshot }: Lending): Promise<void> {
  try {
    await pieces.return()
    await snapshot.close()
  } catch {
    // The store that it was a view of is gone, and the view with it.
  }
}

import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { newOpaqueId } from '../../lib/random.ts'
import type { ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import type { PeerCaller, PeerChannel } from '../peer-channel.ts'
import type { StoreSnapshot } from '../../ports/state-store.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import { decodePeerMessage, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import {
  type TransferredStateHeader,
  StateChunkEncoder,
  type StatePiece,
  copyStatePieces,
} from './state-chunks.ts'
import { TransferPacer } from './transfer-pacer.ts'

export const stateTransferLimits = {
  /** Maximum snapshots that are open for members that rebuild their state; one per member. */
  snapshotsMax: 2,
  /** Time without a read after which a snapshot is closed. */
  idleMsMax: 30_000,
  /** Maximum time to wait until this controller reaches the requested index. */
  reachMsMax: 2000,
  /** Maximum bytes of state in one response to a member that rebuilds its state. */
  pieceBytesMax: 128 * 1024,
} as const

interface StateTransferServerDeps {
  readonly peers: PeerChannel
  readonly machine: ReplicatedStateMachine
  readonly clock: Clock
  /** This controller's own digest at an index; null if it has none. */
  readonly digestAt: (index: Index) => string | null
  /** Whether the state of this controller is in quarantine, so that it must not be sent. */
  readonly isQuarantined: () => boolean
  /** Maximum bytes of state per second, for all members together. */
  readonly bytesPerSecond: number
}

interface Lending {
  readonly id: number
  readonly to: NodeId
  readonly snapshot: StoreSnapshot
  readonly state: TransferredStateHeader
  readonly pieces: AsyncGenerator<StatePiece, void>
  readonly maker: StateChunkEncoder
  next: number
  isReading: boolean
  usedMs: number
}

/**
 * Serves digests and the state of this controller to members that compare or replace their own
 * state.
 */
export class StateTransferServer {
  readonly #deps: StateTransferServerDeps
  readonly #lendings = new Map<number, Lending>()
  readonly #pacer: TransferPacer<() => void>
  #opening = 0
  #nextId = 1

  constructor(deps: StateTransferServerDeps) {
    this.#deps = deps
    const { peers, bytesPerSecond, clock } = deps
    this.#pacer = new TransferPacer(bytesPerSecond, clock, (send) => send())
    const { digest, snapshot, piece } = peerMethods
    peers.serve(digest.name, 'members', (_caller, payload) => this.#digest(payload))
    peers.serve(snapshot.name, 'members', (caller, payload) => this.#open(caller, payload))
    peers.serve(piece.name, 'members', (caller, payload) => this.#read(caller, payload))
    peers.onLink((peer, isReady) => {
      if (!isReady) this.#endOf(peer)
    })
  }

  /** Closes snapshots that no member reads; called periodically. */
  sweep(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    for (const lending of Array.from(this.#lendings.values())) {
      if (nowMs - lending.usedMs > stateTransferLimits.idleMsMax) this.#end(lending)
    }
  }

  /**
   * Closes all transfers, because the state is in quarantine or about to be replaced, or the
   * controller stops.
   */
  endAll(): void {
    for (const lending of Array.from(this.#lendings.values())) this.#end(lending)
  }

  #digest(payload: Uint8Array): Promise<Uint8Array> {
    this.#refuseWhenOut()
    const { request, answer } = peerMethods.digest
    const { index } = decodePeerMessage(request, payload)
    const digest = this.#deps.digestAt(Number(index)) ?? ''
    return Promise.resolve(encodePeerMessage(answer, { digest }))
  }

  async #open({ id: to }: PeerCaller, payload: Uint8Array): Promise<Uint8Array> {
    const { request, answer } = peerMethods.snapshot
    const index = Number(decodePeerMessage(request, payload).index)
    this.#endOf(to)
    const { snapshotsMax, reachMsMax } = stateTransferLimits
    if (this.#lendings.size + this.#opening >= snapshotsMax) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    this.#opening += 1
    try {
      const { machine } = this.#deps
      if (!(await machine.waitForApplied(index, reachMsMax))) throw new Problem('INDEX_NOT_REACHED')
      this.#refuseWhenOut()
      const snapshot = await machine.snapshot()
      const { position } = snapshot.mark
      if (position.index < index || this.#deps.isQuarantined()) {
        await snapshot.close()
        throw new Problem(position.index < index ? 'INDEX_NOT_REACHED' : 'NODE_QUARANTINED')
      }
      const offer = { term: BigInt(position.term), index: BigInt(position.index) }
      const id = BigInt(this.#lend(to, snapshot))
      return encodePeerMessage(answer, { id, ...offer })
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
      state: {
        snapshotId: newOpaqueId(),
        position: snapshot.mark.position,
        configuration: Uint8Array.from(Buffer.from(snapshot.mark.configuration, 'base64')),
      },
      pieces: copyStatePieces(snapshot, stateTransferLimits.pieceBytesMax),
      maker: new StateChunkEncoder(),
      next: 0,
      isReading: false,
      usedMs: this.#deps.clock.monotonicMs(),
    })
    return id
  }

  async #read(caller: PeerCaller, payload: Uint8Array): Promise<Uint8Array> {
    const { id, number } = decodePeerMessage(peerMethods.piece.request, payload)
    const lending = this.#lendings.get(Number(id))
    if (lending?.to !== caller.id) throw new Problem('NOT_FOUND')
    if (lending.isReading || Number(number) !== lending.next) {
      throw new Problem('COULD_NOT_VALIDATE', { detail: 'pieces are read one after the other' })
    }
    lending.isReading = true
    lending.usedMs = this.#deps.clock.monotonicMs()
    try {
      await new Promise<void>((send) => this.#pacer.join(send))
      const { value: piece } = await lending.pieces.next()
      this.#pacer.settle(piece?.data.length ?? 0)
      if (piece === undefined || !this.#lendings.has(lending.id)) throw new Problem('NOT_FOUND')
      lending.next += 1
      if (piece.isLast) this.#lendings.delete(lending.id)
      const chunk = lending.maker.make(lending.state, piece)
      return encodePeerMessage(peerMethods.piece.answer, chunk)
    } finally {
      lending.isReading = false
      if (!this.#lendings.has(lending.id)) void close(lending)
    }
  }

  #refuseWhenOut(): void {
    if (this.#deps.isQuarantined()) throw new Problem('NODE_QUARANTINED')
  }

  #endOf(peer: NodeId): void {
    for (const lending of Array.from(this.#lendings.values())) {
      if (lending.to === peer) this.#end(lending)
    }
  }

  #end(lending: Lending): void {
    this.#lendings.delete(lending.id)
    // If a read is in progress, that read closes the snapshot itself.
    if (!lending.isReading) void close(lending)
  }
}

async function close({ pieces, snapshot }: Lending): Promise<void> {
  try {
    await pieces.return()
    await snapshot.close()
  } catch {
    // The error is ignored: the replacement of the store has already closed its snapshot.
  }
}

import type { SnapshotAck, SnapshotChunk } from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CoreStatus } from '../../raft/effects.ts'
import { memberIds } from '../../raft/configuration.ts'
import type { Index, NodeId, Position, Term } from '../../raft/types.ts'
import type { ConsensusThreadCommand, ConsensusThreadEvent } from '../thread-channel.ts'
import type { Logger } from '../logger.ts'
import {
  defaultSnapshotReceiverOptions,
  type ReceivedSnapshot,
  SnapshotReceiver,
} from './snapshot-receiver.ts'
import {
  defaultSnapshotSenderOptions,
  SnapshotSender,
  type SnapshotSenderOptions,
} from './snapshot-sender.ts'

/** Commands of the main thread about the snapshots that it reads and writes. */
type SnapshotCommand = Extract<
  ConsensusThreadCommand,
  {
    type:
      | 'snapshotOpened'
      | 'snapshotChunk'
      | 'snapshotFailed'
      | 'receiveWritten'
      | 'receiveFinished'
      | 'receiveFailed'
      | 'restored'
  }
>

interface SnapshotTransfersDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Term and leader as the Raft core knows them. */
  readonly leadership: () => Pick<CoreStatus, 'leader' | 'term'>
  readonly post: (event: ConsensusThreadEvent, transfer?: readonly ArrayBuffer[]) => void
  /**
   * Sends a chunk of a snapshot.
   * @returns false when the chunk cannot be sent now.
   */
  readonly sendChunk: (to: NodeId, term: Term, chunk: SnapshotChunk) => boolean
  readonly sendAck: (to: NodeId, term: Term, ack: SnapshotAck) => void
  readonly onSent: (to: NodeId, outcome: 'sent' | 'failed') => void
  readonly onReceived: (snapshot: ReceivedSnapshot) => void
}

/** The consensus thread's part of snapshot transfers: the outgoing ones and the incoming one. */
export class SnapshotTransfers {
  readonly #deps: SnapshotTransfersDeps
  readonly #sender: SnapshotSender
  readonly #receiver: SnapshotReceiver

  constructor(options: Partial<SnapshotSenderOptions>, deps: SnapshotTransfersDeps) {
    this.#deps = deps
    this.#sender = this.#makeSender({ ...defaultSnapshotSenderOptions, ...options })
    this.#receiver = this.#makeReceiver()
  }

  /** Sends a snapshot to a peer that needs entries which the log has compacted. */
  send(to: NodeId): void {
    this.#deps.log.info({ peer: to }, `${to} needs compacted entries; sending a snapshot`)
    this.#sender.start(to, this.#deps.leadership().term)
  }

  /**
   * Makes the main thread install the snapshot received for `position`. Resolves when it has done
   * so.
   */
  async restore(position: Position): Promise<void> {
    await this.#receiver.restore(position)
  }

  onCommand(command: SnapshotCommand): void {
    const { id } = command
    switch (command.type) {
      case 'snapshotOpened':
        this.#sender.onOpened(id, command.position, command.configuration)
        break
      case 'snapshotChunk':
        this.#sender.onChunk(id, command.data, command.isLast)
        break
      case 'snapshotFailed':
        this.#sender.onSourceFailed(id, command.reason)
        break
      case 'receiveWritten':
        this.#receiver.onWritten(id)
        break
      case 'receiveFinished':
        this.#receiver.onFinished(id, command.position, command.configuration)
        break
      case 'receiveFailed':
        this.#receiver.onSourceFailed(id, command.reason)
        break
      case 'restored':
        this.#receiver.onRestored(id)
        break
    }
  }

  onChunk(from: NodeId, term: Term, chunk: SnapshotChunk): void {
    this.#receiver.onChunk(from, term, chunk)
  }

  onAck(from: NodeId, ack: SnapshotAck): void {
    this.#sender.onAck(from, ack)
  }

  onLinkReady(to: NodeId): void {
    this.#sender.onLinkReady(to)
    this.#receiver.onLinkReady(to)
  }

  onLinkLost(to: NodeId): void {
    this.#sender.onLinkLost(to)
  }

  /** Aborts transfers that a change of leadership or members makes useless. */
  onStatus(status: CoreStatus, hasNewMembers: boolean): void {
    if (hasNewMembers) {
      const ids = memberIds(status.configuration)
      this.#sender.abandonUnless((id) => ids.includes(id))
    }
    this.#sender.abandonOtherThan(status.role === 'leader' ? status.term : null)
  }

  /** Drops an offered snapshot that the Raft core has ignored. */
  onCommit(commit: Index): void {
    this.#receiver.dropIfPassedOver(commit)
  }

  /** Called periodically; see {@link SnapshotSender.sweep}. */
  sweep(matchOf: (id: NodeId) => Index): void {
    this.#sender.sweep(matchOf)
    this.#receiver.sweep()
  }

  stop(): void {
    this.#sender.stop()
  }

  #makeSender(options: SnapshotSenderOptions): SnapshotSender {
    const { clock, post, sendChunk, onSent, log } = this.#deps
    return new SnapshotSender(options, {
      clock,
      post,
      send: sendChunk,
      onDone: (to, outcome, reason) => {
        onSent(to, outcome)
        log.info({ peer: to }, `snapshot to ${to} ${outcome}: ${reason}`)
      },
      onSuspended: (to, chunksWritten) => {
        const text = `snapshot to ${to} paused at chunk ${chunksWritten}: peer disconnected`
        log.info({ peer: to }, text)
      },
    })
  }

  #makeReceiver(): SnapshotReceiver {
    const { clock, post, sendAck, leadership, onReceived, log } = this.#deps
    return new SnapshotReceiver(defaultSnapshotReceiverOptions, {
      clock,
      leadership,
      post,
      send: sendAck,
      onReceived: (snapshot) => {
        const { from, position } = snapshot
        log.info({ peer: from, ...position }, `received snapshot at index ${position.index}`)
        onReceived(snapshot)
      },
      onFailed: (from, reason) => {
        log.warn({ peer: from }, `snapshot from ${from} aborted: ${reason}`)
      },
    })
  }
}

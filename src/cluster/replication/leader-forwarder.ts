import { create } from '@bufbuild/protobuf'

import {
  type ForwardFrame,
  type Propose,
  type ProposeRefused,
  ProposeRefusedSchema,
  ProposeSchema,
  ReadIndexRequestSchema,
  ReadIndexResponseSchema,
} from '../../../proto/gen/mesh_pb.ts'
import type { ProposalResult } from '../../raft/effects.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { ConsensusThreadEvent, ProposalForwardRefusalCode } from '../thread-channel.ts'
import { NO_TRACE, decodeTrace } from '../../lib/trace-context.ts'
import { toSafeInteger } from '../message-codec.ts'
import type { PackedProposal } from './proposal-codec.ts'

/** The part of the local Raft node to which proposals and reads are passed. */
interface ProposalTarget {
  /** Results arrive at {@link LeaderForwarder.onProposed} with the same ids. */
  propose(proposals: readonly { readonly id: number; readonly data: Uint8Array }[]): void
  /** The result arrives at {@link LeaderForwarder.onRead} with the same id. */
  read(id: number): void
}

interface ForwardingDeps {
  readonly selfId: NodeId
  readonly target: ProposalTarget
  readonly leader: () => NodeId | null
  readonly forward: (to: NodeId, frame: ForwardFrame['frame']) => boolean
  readonly answer: (to: NodeId, frame: ForwardFrame['frame']) => void
  readonly post: (event: ConsensusThreadEvent) => void
}

/**
 * The requester of a proposal or a read, which waits for a response of the node: a peer, or the
 * main thread if `from` is null.
 */
interface ReadRequester {
  readonly from: NodeId | null
  /** Request id chosen by the requester. */
  readonly number: number
}

/**
 * Maximum bytes of commands in one frame; a larger batch is split over several frames, and a larger
 * command is sent alone.
 */
const FRAME_COMMANDS_BYTES_MAX = 1024 * 1024
/**
 * Maximum proposals, and maximum reads, that wait for a response of the node; further ones are
 * refused.
 */
const ASKERS_MAX = 262_144
/** Maximum read rounds that were sent to peers and have no response yet. */
const REMOTE_READS_MAX = 16_384

/**
 * Sends proposals and read rounds to the leader, which is either the local node or a peer. Accepts
 * requests from peers only on the leader, and responds to every request that it refuses.
 */
export class LeaderForwarder {
  readonly #deps: ForwardingDeps
  readonly #proposals = new Map<number, ReadRequester>()
  readonly #reads = new Map<number, ReadRequester>()
  /**
   * Read rounds of the main thread that were sent to a peer: the peer's id by the round's number.
   */
  readonly #remoteReads = new Map<number, NodeId>()
  #nextId = 1

  constructor(deps: ForwardingDeps) {
    this.#deps = deps
  }

  proposeFromMain(proposals: readonly PackedProposal[]): void {
    const leader = this.#deps.leader()
    if (leader === this.#deps.selfId) {
      this.#proposeHere(null, proposals)
    } else if (leader === null) {
      this.#refuseMain(proposals, 'NO_LEADER')
    } else {
      this.#forward(leader, proposals)
    }
  }

  readFromMain(number: number): void {
    const leader = this.#deps.leader()
    if (leader === this.#deps.selfId) {
      this.#readHere({ from: null, number })
      return
    }
    const value = create(ReadIndexRequestSchema, { id: BigInt(number) })
    const hasRoom = this.#remoteReads.size < REMOTE_READS_MAX
    if (
      leader !== null &&
      hasRoom &&
      this.#deps.forward(leader, { case: 'readIndexRequest', value })
    ) {
      this.#remoteReads.set(number, leader)
    } else {
      this.#deps.post({ type: 'readIndex', id: number, index: null })
    }
  }

  /**
   * Handles a frame of a forward stream.
   * @param isAnswer whether the frame arrived on the stream that this member dialed.
   */
  onFrame(from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean): void {
    if (isAnswer) {
      if (frame.case === 'refused') this.#onRefused(frame.value)
      else if (frame.case === 'readIndexResponse') {
        const { id, index, refused } = frame.value
        this.#onRemoteRead(from, toSafeInteger(id), refused ? null : toSafeInteger(index))
      }
    } else if (frame.case === 'propose') {
      this.#onPropose(from, frame.value)
    } else if (frame.case === 'readIndexRequest') {
      this.#onReadRequest(from, toSafeInteger(frame.value.id))
    }
  }

  /**
   * Called when the streams to a peer have ended; the outcome of unanswered requests to the peer is
   * unknown.
   */
  onLinkLost(to: NodeId): void {
    if (this.#deps.leader() === to) this.#deps.post({ type: 'handoverLost' })
    for (const [number, asked] of this.#remoteReads) {
      if (asked !== to) continue
      this.#remoteReads.delete(number)
      this.#deps.post({ type: 'readIndex', id: number, index: null })
    }
  }

  /**
   * Called with the result of a proposal.
   * @param refusal null if the proposal was logged.
   */
  onProposed(id: number, refusal: ProposalForwardRefusalCode | null): void {
    const asker = this.#proposals.get(id)
    this.#proposals.delete(id)
    if (asker === undefined || refusal === null) return
    this.#refuse(asker, refusal)
  }

  /**
   * Called with the result of a read.
   * @param index null if the read was refused.
   */
  onRead(id: number, index: Index | null): void {
    const asker = this.#reads.get(id)
    this.#reads.delete(id)
    if (asker !== undefined) this.#answerRead(asker, index)
  }

  #proposeHere(from: NodeId | null, proposals: readonly PackedProposal[]): void {
    if (this.#proposals.size + proposals.length > ASKERS_MAX) {
      for (const { sequence } of proposals) this.#refuse({ from, number: sequence }, 'OVERLOADED')
      return
    }
    this.#deps.target.propose(
      proposals.map(({ sequence, command }) => {
        const id = this.#nextId
        this.#nextId += 1
        this.#proposals.set(id, { from, number: sequence })
        return { id, data: command }
      }),
    )
  }

  #readHere(asker: ReadRequester): void {
    if (this.#reads.size >= ASKERS_MAX) {
      this.#answerRead(asker, null)
      return
    }
    const id = this.#nextId
    this.#nextId += 1
    this.#reads.set(id, asker)
    this.#deps.target.read(id)
  }

  #forward(leader: NodeId, proposals: readonly PackedProposal[]): void {
    let batch: PackedProposal[] = []
    let bytes = 0
    for (const proposal of proposals) {
      if (batch.length > 0 && bytes + proposal.command.length > FRAME_COMMANDS_BYTES_MAX) {
        this.#forwardBatch(leader, batch)
        batch = []
        bytes = 0
      }
      batch.push(proposal)
      bytes += proposal.command.length
    }
    if (batch.length > 0) this.#forwardBatch(leader, batch)
  }

  #forwardBatch(leader: NodeId, batch: readonly PackedProposal[]): void {
    const value = create(ProposeSchema, {
      proposals: batch.map(({ sequence, ...rest }) => ({ sequence: BigInt(sequence), ...rest })),
    })
    if (!this.#deps.forward(leader, { case: 'propose', value })) {
      this.#refuseMain(batch, 'NO_LEADER')
    }
  }

  #onPropose(from: NodeId, { proposals }: Propose): void {
    const unpacked = proposals.map(({ sequence, command, trace }) => ({
      sequence: toSafeInteger(sequence),
      command,
      trace,
    }))
    if (this.#deps.leader() === this.#deps.selfId) {
      this.#logTraced(from, unpacked)
      this.#proposeHere(from, unpacked)
      return
    }
    for (const { sequence } of unpacked) this.#refuse({ from, number: sequence }, 'NOT_LEADER')
  }

  /**
   * Logs a forwarded write if its request is traced, so that the trace continues on this
   * controller.
   */
  #logTraced(from: NodeId, proposals: readonly PackedProposal[]): void {
    const message = `proposing a write forwarded by ${from}`
    for (const { trace = NO_TRACE } of proposals) {
      const ids = decodeTrace(trace)
      const fields = { peer: from, ...ids }
      if (ids !== null) this.#deps.post({ type: 'log', level: 'info', fields, message })
    }
  }

  #onReadRequest(from: NodeId, number: number): void {
    if (this.#deps.leader() === this.#deps.selfId) this.#readHere({ from, number })
    else this.#answerRead({ from, number }, null)
  }

  #onRefused({ sequence, code }: ProposeRefused): void {
    const known = (['OVERLOADED', 'TOO_LARGE'] as const).find((word) => word === code)
    this.#deps.post({
      type: 'refused',
      sequences: [toSafeInteger(sequence)],
      code: known ?? 'NOT_LEADER',
    })
  }

  #onRemoteRead(from: NodeId, number: number, index: Index | null): void {
    if (this.#remoteReads.get(number) !== from) return
    this.#remoteReads.delete(number)
    this.#deps.post({ type: 'readIndex', id: number, index })
  }

  #refuseMain(proposals: readonly PackedProposal[], code: ProposalForwardRefusalCode): void {
    const sequences = proposals.map(({ sequence }) => sequence)
    this.#deps.post({ type: 'refused', sequences, code })
  }

  #refuse({ from, number }: ReadRequester, code: ProposalForwardRefusalCode): void {
    if (from === null) {
      this.#deps.post({ type: 'refused', sequences: [number], code })
      return
    }
    const value = create(ProposeRefusedSchema, {
      sequence: BigInt(number),
      code,
      leaderHint: this.#deps.leader() ?? '',
    })
    this.#deps.answer(from, { case: 'refused', value })
  }

  #answerRead({ from, number }: ReadRequester, index: Index | null): void {
    if (from === null) {
      this.#deps.post({ type: 'readIndex', id: number, index })
      return
    }
    const value = create(ReadIndexResponseSchema, {
      id: BigInt(number),
      index: BigInt(index ?? 0),
      refused: index === null,
    })
    this.#deps.answer(from, { case: 'readIndexResponse', value })
  }
}

/** Refusal code that the requester of a proposal receives. */
export function toProposalForwardRefusalCode(
  code: (ProposalResult & { ok: false })['code'],
): ProposalForwardRefusalCode {
  switch (code) {
    case 'OVERLOADED':
    case 'TOO_LARGE':
      return code
    case 'NOT_LEADER':
    case 'CHANGE_IN_PROGRESS':
    case 'NOT_CAUGHT_UP':
    case 'INVALID_CONFIGURATION':
      return 'NOT_LEADER'
  }
}

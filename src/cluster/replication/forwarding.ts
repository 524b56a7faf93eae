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
import type { HostEvent, RefusalCode } from '../link.ts'
import { NO_TRACE, decodeTrace } from '../../lib/trace-context.ts'
import { integer } from '../message-codec.ts'
import type { PackedProposal } from './proposal-codec.ts'

/** Part of the consensus node of this host that forwarding needs. */
export interface ProposalTarget {
  /** Results come through {@link Forwarding.onProposed} under the same ids. */
  propose(proposals: readonly { readonly id: number; readonly data: Uint8Array }[]): void
  /** Results come through {@link Forwarding.onRead} under the same id. */
  read(id: number): void
}

export interface ForwardingParts {
  readonly selfId: NodeId
  readonly target: ProposalTarget
  readonly leader: () => NodeId | null
  readonly forward: (to: NodeId, frame: ForwardFrame['frame']) => boolean
  readonly answer: (to: NodeId, frame: ForwardFrame['frame']) => void
  readonly post: (event: HostEvent) => void
}

/** A peer that waits for an answer of the node, or main when `from` is null. */
interface ReadRequester {
  readonly from: NodeId | null
  /** Request id chosen by the requester. */
  readonly number: number
}

/**
 * Bytes of the commands in one frame, so that a batch is spread over frames rather than refused.
 */
const FRAME_COMMANDS_BYTES_MAX = 1024 * 1024
/** Waiting for the node at once; beyond it peers are refused. */
const ASKERS_MAX = 262_144
/** Rounds that peers were asked for and have not answered. */
const REMOTE_READS_MAX = 16_384

/**
 * Brings proposals and read rounds to the leader: to the node of this host, or over the mesh. What
 * comes from peers is taken by the leader only, and everything that is refused is answered for.
 */
export class Forwarding {
  readonly #parts: ForwardingParts
  readonly #proposals = new Map<number, ReadRequester>()
  readonly #reads = new Map<number, ReadRequester>()
  /** Main's read rounds that a peer was asked for. */
  readonly #remoteReads = new Map<number, NodeId>()
  #nextId = 1

  constructor(parts: ForwardingParts) {
    this.#parts = parts
  }

  proposeFromMain(proposals: readonly PackedProposal[]): void {
    const leader = this.#parts.leader()
    if (leader === this.#parts.selfId) {
      this.#proposeHere(null, proposals)
    } else if (leader === null) {
      this.#refuseMain(proposals, 'NO_LEADER')
    } else {
      this.#forward(leader, proposals)
    }
  }

  readFromMain(number: number): void {
    const leader = this.#parts.leader()
    if (leader === this.#parts.selfId) {
      this.#readHere({ from: null, number })
      return
    }
    const value = create(ReadIndexRequestSchema, { id: BigInt(number) })
    const hasRoom = this.#remoteReads.size < REMOTE_READS_MAX
    if (
      leader !== null &&
      hasRoom &&
      this.#parts.forward(leader, { case: 'readIndexRequest', value })
    ) {
      this.#remoteReads.set(number, leader)
    } else {
      this.#parts.post({ type: 'readIndex', id: number, index: null })
    }
  }

  /** @param isAnswer the frame came back on the stream that this member dialled. */
  onFrame(from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean): void {
    if (isAnswer) {
      if (frame.case === 'refused') this.#onRefused(frame.value)
      else if (frame.case === 'readIndexResponse') {
        const { id, index, refused } = frame.value
        this.#onRemoteRead(from, integer(id), refused ? null : integer(index))
      }
    } else if (frame.case === 'propose') {
      this.#onPropose(from, frame.value)
    } else if (frame.case === 'readIndexRequest') {
      this.#onReadRequest(from, integer(frame.value.id))
    }
  }

  /** The streams to a peer have ended: what it was asked and has not answered is open. */
  onLinkLost(to: NodeId): void {
    if (this.#parts.leader() === to) this.#parts.post({ type: 'handoverLost' })
    for (const [number, asked] of this.#remoteReads) {
      if (asked !== to) continue
      this.#remoteReads.delete(number)
      this.#parts.post({ type: 'readIndex', id: number, index: null })
    }
  }

  /** @param refusal null: it was logged. */
  onProposed(id: number, refusal: RefusalCode | null): void {
    const asker = this.#proposals.get(id)
    this.#proposals.delete(id)
    if (asker === undefined || refusal === null) return
    this.#refuse(asker, refusal)
  }

  /** @param index null: it was refused. */
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
    this.#parts.target.propose(
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
    this.#parts.target.read(id)
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
    if (!this.#parts.forward(leader, { case: 'propose', value })) {
      this.#refuseMain(batch, 'NO_LEADER')
    }
  }

  #onPropose(from: NodeId, { proposals }: Propose): void {
    const unpacked = proposals.map(({ sequence, command, trace }) => ({
      sequence: integer(sequence),
      command,
      trace,
    }))
    if (this.#parts.leader() === this.#parts.selfId) {
      this.#tellTraced(from, unpacked)
      this.#proposeHere(from, unpacked)
      return
    }
    for (const { sequence } of unpacked) this.#refuse({ from, number: sequence }, 'NOT_LEADER')
  }

  /**
   * Whoever follows a trace finds the write on the controller that it went to; what nobody traces
   * is not told.
   */
  #tellTraced(from: NodeId, proposals: readonly PackedProposal[]): void {
    const message = `proposing a write forwarded by ${from}`
    for (const { trace = NO_TRACE } of proposals) {
      const ids = decodeTrace(trace)
      const fields = { peer: from, ...ids }
      if (ids !== null) this.#parts.post({ type: 'log', level: 'info', fields, message })
    }
  }

  #onReadRequest(from: NodeId, number: number): void {
    if (this.#parts.leader() === this.#parts.selfId) this.#readHere({ from, number })
    else this.#answerRead({ from, number }, null)
  }

  #onRefused({ sequence, code }: ProposeRefused): void {
    const known = (['OVERLOADED', 'TOO_LARGE'] as const).find((word) => word === code)
    this.#parts.post({
      type: 'refused',
      sequences: [integer(sequence)],
      code: known ?? 'NOT_LEADER',
    })
  }

  #onRemoteRead(from: NodeId, number: number, index: Index | null): void {
    if (this.#remoteReads.get(number) !== from) return
    this.#remoteReads.delete(number)
    this.#parts.post({ type: 'readIndex', id: number, index })
  }

  #refuseMain(proposals: readonly PackedProposal[], code: RefusalCode): void {
    const sequences = proposals.map(({ sequence }) => sequence)
    this.#parts.post({ type: 'refused', sequences, code })
  }

  #refuse({ from, number }: ReadRequester, code: RefusalCode): void {
    if (from === null) {
      this.#parts.post({ type: 'refused', sequences: [number], code })
      return
    }
    const value = create(ProposeRefusedSchema, {
      sequence: BigInt(number),
      code,
      leaderHint: this.#parts.leader() ?? '',
    })
    this.#parts.answer(from, { case: 'refused', value })
  }

  #answerRead({ from, number }: ReadRequester, index: Index | null): void {
    if (from === null) {
      this.#parts.post({ type: 'readIndex', id: number, index })
      return
    }
    const value = create(ReadIndexResponseSchema, {
      id: BigInt(number),
      index: BigInt(index ?? 0),
      refused: index === null,
    })
    this.#parts.answer(from, { case: 'readIndexResponse', value })
  }
}

/** Code for a controller that forwarded a proposal: why it was not logged. */
export function forwardedRefusal(code: (ProposalResult & { ok: false })['code']): RefusalCode {
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

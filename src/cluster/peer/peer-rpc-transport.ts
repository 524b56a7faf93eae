import { create } from '@bufbuild/protobuf'

import {
  AnswerSchema,
  type CallRequest,
  type CallResponse,
  CallResponseSchema,
  CallSchema,
  type ForwardFrame,
  NoteSchema,
} from '../../../proto/gen/mesh_pb.ts'
import { PEER_PAYLOAD_BYTES_MAX, type PeerCaller } from '../peer-channel.ts'
import type { NodeId } from '../../raft/types.ts'
import type {
  PeerCallFailure,
  ConsensusThreadCommand,
  ConsensusThreadEvent,
} from '../thread-channel.ts'
import { toTransferableBytes } from '../../lib/runtime/transferable-bytes.ts'
import { toSafeInteger } from '../message-codec.ts'

interface PeerRpcTransportDeps {
  readonly forward: (to: NodeId, frame: ForwardFrame['frame']) => boolean
  readonly answer: (to: NodeId, frame: ForwardFrame['frame']) => void
  /**
   * The caller, as the open streams of a member have authenticated it; null if the member has none.
   */
  readonly callerOf: (id: NodeId) => PeerCaller | null
  readonly post: (event: ConsensusThreadEvent, transfer?: readonly ArrayBuffer[]) => void
}

type PeerCommand = Extract<ConsensusThreadCommand, { type: 'note' | 'call' | 'answerCall' }>

/** Maximum concurrent calls of one peer, and of all non-members together. */
const SERVED_MAX = 64
/**
 * Maximum calls of the main thread that this class tracks. The main thread has fewer calls in
 * progress, but does not report the calls that it has abandoned.
 */
const CALLS_MAX = 2048
const TEXT_CHARACTERS_MAX = 64

/** Notes and calls between the main threads of members, as frames of their forward streams. */
export class PeerRpcTransport {
  readonly #deps: PeerRpcTransportDeps
  /** Calls that this controller's main thread has in progress: the id of the callee by call id. */
  readonly #calls = new Map<number, NodeId>()
  /**
   * Calls that the main thread is processing, with their caller and the function that sends the
   * response.
   */
  readonly #served = new Map<
    number,
    { readonly from: NodeId; readonly answer: (response: CallResponse) => void }
  >()
  #nextTicket = 1

  constructor(deps: PeerRpcTransportDeps) {
    this.#deps = deps
  }

  onCommand(command: PeerCommand): void {
    switch (command.type) {
      case 'note': {
        const { to, topic, payload } = command
        this.#deps.forward(to, { case: 'note', value: create(NoteSchema, { topic, payload }) })
        break
      }
      case 'call': {
        const { id, to, method, payload } = command
        const value = create(CallSchema, { id: BigInt(id), request: { method, payload } })
        if (this.#deps.forward(to, { case: 'call', value })) this.#remember(id, to)
        else this.#fail(id, `no connection to ${to}`)
        break
      }
      case 'answerCall': {
        const served = this.#served.get(command.ticket)
        this.#served.delete(command.ticket)
        const { payload, failure } = command
        served?.answer(
          create(CallResponseSchema, { payload, ...(failure === null ? {} : { failure }) }),
        )
        break
      }
    }
  }

  /**
   * Handles a frame of a forward stream.
   * @param isAnswer whether the frame arrived on the stream that this member dialed.
   */
  onFrame(from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean): void {
    if (frame.case === 'note') {
      const { topic, payload } = frame.value
      if (payload.length > PEER_PAYLOAD_BYTES_MAX || topic.length > TEXT_CHARACTERS_MAX) return
      const owned = toTransferableBytes(payload)
      this.#deps.post({ type: 'note', from, topic, payload: owned }, [owned.buffer])
    } else if (frame.case === 'call' && !isAnswer) {
      this.#onCall(from, toSafeInteger(frame.value.id), frame.value.request)
    } else if (frame.case === 'answer' && isAnswer) {
      this.#onAnswer(from, toSafeInteger(frame.value.id), frame.value.response)
    }
  }

  /**
   * Serves a single call outside of streams. The caller counts as a non-member; it may be a
   * controller that joins, for example.
   */
  onStranger(
    caller: PeerCaller,
    request: CallRequest,
    answer: (response: CallResponse) => void,
  ): void {
    this.#serve(caller, '', request, answer)
  }

  /**
   * Called when the streams to a peer have ended; the outcome of unanswered calls to the peer is
   * unknown.
   */
  onLinkLost(to: NodeId): void {
    for (const [id, callee] of this.#calls) {
      if (callee === to) this.#fail(id, `connection to ${to} closed before the response`)
    }
  }

  #remember(id: number, to: NodeId): void {
    this.#calls.set(id, to)
    const [oldest] = this.#calls.keys()
    if (this.#calls.size > CALLS_MAX && oldest !== undefined) this.#calls.delete(oldest)
  }

  #onCall(from: NodeId, id: number, request: CallRequest | undefined): void {
    const answer = (response: CallResponse): void => {
      const value = create(AnswerSchema, { id: BigInt(id), response })
      this.#deps.answer(from, { case: 'answer', value })
    }
    const caller = this.#deps.callerOf(from)
    if (caller === null || request === undefined) return
    this.#serve(caller, from, request, answer)
  }

  #serve(
    caller: PeerCaller,
    from: NodeId,
    { method, payload }: CallRequest,
    answer: (response: CallResponse) => void,
  ): void {
    const count = [...this.#served.values()].filter((served) => served.from === from).length
    const isTooLarge =
      payload.length > PEER_PAYLOAD_BYTES_MAX || method.length > TEXT_CHARACTERS_MAX
    if (count >= SERVED_MAX || isTooLarge) {
      const failure = { code: 'SERVER_TOO_MANY_REQUESTS', reason: 'too many or too large calls' }
      answer(create(CallResponseSchema, { failure }))
      return
    }
    const ticket = this.#nextTicket
    this.#nextTicket += 1
    this.#served.set(ticket, { from, answer })
    this.#deps.post({ type: 'called', ticket, caller, method, payload })
  }

  #onAnswer(from: NodeId, id: number, response: CallResponse | undefined): void {
    if (this.#calls.get(id) !== from || response === undefined) return
    this.#calls.delete(id)
    const { payload, failure } = response
    if (payload.length > PEER_PAYLOAD_BYTES_MAX) {
      this.#fail(id, `response of ${from} is too large`)
      return
    }
    const sent: PeerCallFailure | null =
      failure === undefined ? null : { code: failure.code, reason: failure.reason }
    this.#deps.post({ type: 'callAnswered', id, payload, failure: sent })
  }

  #fail(id: number, reason: string): void {
    this.#calls.delete(id)
    const failure = { code: 'PEER_UNREACHABLE', reason }
    this.#deps.post({ type: 'callAnswered', id, payload: new Uint8Array(0), failure })
  }
}

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type Attestation as WireAttestation,
  AttestationSchema,
  type ForwardFrame,
  ForwardFrameSchema,
  type Hello,
  type Position as WirePosition,
  PositionSchema,
  RaftFrameSchema,
  type RaftMessage,
  RaftMessageSchema,
  type SnapshotAck,
  type SnapshotChunk,
} from '../../proto/gen/mesh_pb.ts'
import { toSafeInteger } from '../lib/text/safe-integer.ts'
import { decodeEntries, encodeEntries } from '../raft/entry-codec.ts'
import type { Attestation, Entry, Message, NodeId, Position, Term } from '../raft/types.ts'

/** Frames of a Raft stream. `unknown` is a kind that this release does not know. */
export type RaftStreamFrame =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'snapshotChunk'; readonly term: Term; readonly chunk: SnapshotChunk }
  | { readonly kind: 'snapshotAck'; readonly term: Term; readonly ack: SnapshotAck }
  | { readonly kind: 'unknown' }

export { toSafeInteger }

type WireBody = RaftMessage['body']
type AppendRequest = Extract<Message, { readonly type: 'appendRequest' }>

/**
 * Encodes outgoing Raft messages. Followers usually get the same entries, so the encoder caches the
 * last packed entries. Index and term identify an entry (log matching), so first index, last index
 * and last term identify the packed bytes.
 */
export class MessageEncoder {
  #first = 0
  #last = 0
  #lastTerm = 0
  #packed: Uint8Array = new Uint8Array(0)

  encode(message: Message): Uint8Array {
    return encodeRaftMessage(message.term, this.#body(message))
  }

  #body(message: Message): WireBody {
    switch (message.type) {
      case 'voteRequest':
        return wire('voteRequest', {
          pre: message.pre,
          last: wirePosition(message.last),
          transfer: message.transfer,
        })
      case 'voteResponse':
        return wire('voteResponse', { pre: message.pre, granted: message.granted })
      case 'appendRequest':
        return wire('appendRequest', {
          previous: wirePosition(message.previous),
          commit: BigInt(message.commit),
          entries: this.#pack(message),
        })
      case 'appendResponse':
        return wire('appendResponse', {
          success: message.success,
          matchIndex: BigInt(message.matchIndex),
          hint: wirePosition(message.hint),
          rejectedIndex: BigInt(message.rejectedIndex),
          hasLost: message.hasLost ?? false,
        })
      case 'heartbeatRequest':
        return wire('heartbeatRequest', {
          commit: BigInt(message.commit),
          readSequence: BigInt(message.readSequence),
          ...(message.attested === undefined
            ? {}
            : { attested: wireAttestation(message.attested) }),
        })
      case 'heartbeatResponse':
        return wire('heartbeatResponse', {
          readSequence: BigInt(message.readSequence),
          clockMs: BigInt(message.clockMs),
          owingBoot: BigInt(message.owingBoot ?? 0),
        })
      case 'commitNotice':
        return wire('commitNotice', { commit: BigInt(message.commit) })
      case 'timeoutNow':
        return wire('timeoutNow', {})
      case 'snapshot':
        // The Raft core never sends a snapshot message: the receiving consensus thread creates it
        // after it has verified all chunks.
        throw new RangeError('a snapshot message does not travel; its chunks do')
    }
  }

  #pack({ entries }: AppendRequest): Uint8Array {
    const first = entries[0]
    const last = entries.at(-1)
    if (first === undefined || last === undefined) return NOTHING
    const isSame =
      first.index === this.#first && last.index === this.#last && last.term === this.#lastTerm
    if (!isSame) {
      this.#packed = encodeEntries(entries)
      this.#first = first.index
      this.#last = last.index
      this.#lastTerm = last.term
    }
    return this.#packed
  }
}

const NOTHING = new Uint8Array(0)

type BodyInit<C extends WireBody['case']> = C extends string
  ? Omit<Extract<WireBody, { case: C }>['value'], '$typeName' | '$unknown'>
  : never

/**
 * `create` of the whole message converts the plain fields. The cast restores the union of case and
 * value.
 */
function wire<C extends NonNullable<WireBody['case']>>(kind: C, value: BodyInit<C>): WireBody {
  return { case: kind, value } as unknown as WireBody
}

function wirePosition(position: Position): WirePosition {
  return create(PositionSchema, { term: BigInt(position.term), index: BigInt(position.index) })
}

function wireAttestation({ boot, lastIndex }: Attestation): WireAttestation {
  return create(AttestationSchema, { boot: BigInt(boot), lastIndex: BigInt(lastIndex) })
}

export function encodeSnapshotChunk(term: Term, chunk: SnapshotChunk): Uint8Array {
  return encodeRaftMessage(term, { case: 'snapshotChunk', value: chunk })
}

export function encodeSnapshotAck(term: Term, ack: SnapshotAck): Uint8Array {
  return encodeRaftMessage(term, { case: 'snapshotAck', value: ack })
}

function encodeRaftMessage(term: Term, body: WireBody): Uint8Array {
  const message = create(RaftMessageSchema, { term: BigInt(term), body })
  return toBinary(
    RaftFrameSchema,
    create(RaftFrameSchema, { frame: { case: 'message', value: message } }),
  )
}

export function encodeRaftHello(hello: Hello): Uint8Array {
  return toBinary(
    RaftFrameSchema,
    create(RaftFrameSchema, { frame: { case: 'hello', value: hello } }),
  )
}

export function encodeForwardFrame(frame: ForwardFrame['frame']): Uint8Array {
  return toBinary(ForwardFrameSchema, create(ForwardFrameSchema, { frame }))
}

/**
 * Decodes a frame of a forward stream.
 * @throws when the bytes are not a valid frame.
 */
export function decodeForwardFrame(bytes: Uint8Array): ForwardFrame['frame'] {
  return fromBinary(ForwardFrameSchema, bytes).frame
}

/**
 * Decodes a frame of a Raft stream.
 * @param from authenticated peer of the stream; the message gets this sender, so it cannot claim
 * another one.
 * @throws when the bytes are not a valid frame or a number exceeds a safe integer.
 */
export function decodeRaftFrame(bytes: Uint8Array, from: NodeId, to: NodeId): RaftStreamFrame {
  const { frame } = fromBinary(RaftFrameSchema, bytes)
  if (frame.case === 'hello') return { kind: 'hello', hello: frame.value }
  if (frame.case !== 'message') return { kind: 'unknown' }
  const term = toSafeInteger(frame.value.term)
  const { body } = frame.value
  if (body.case === 'snapshotChunk') return { kind: 'snapshotChunk', term, chunk: body.value }
  if (body.case === 'snapshotAck') return { kind: 'snapshotAck', term, ack: body.value }
  const decoded = decodeBody(body)
  if (decoded === null) return { kind: 'unknown' }
  return { kind: 'message', message: { ...decoded, from, to, term } }
}

type Body = Message extends infer M
  ? M extends Message
    ? Omit<M, 'from' | 'to' | 'term'>
    : never
  : never

function decodeBody(body: WireBody): Body | null {
  switch (body.case) {
    case 'voteRequest': {
      const { pre, last, transfer } = body.value
      return { type: 'voteRequest', pre, last: decodePosition(last), transfer }
    }
    case 'voteResponse':
      return { type: 'voteResponse', pre: body.value.pre, granted: body.value.granted }
    case 'appendRequest': {
      const { previous, commit, entries } = body.value
      return {
        type: 'appendRequest',
        previous: decodePosition(previous),
        commit: toSafeInteger(commit),
        entries: consecutive(decodeEntries(entries), decodePosition(previous)),
      }
    }
    case 'appendResponse': {
      const { success, matchIndex, hint, rejectedIndex, hasLost } = body.value
      return {
        type: 'appendResponse',
        success,
        matchIndex: toSafeInteger(matchIndex),
        hint: decodePosition(hint),
        rejectedIndex: toSafeInteger(rejectedIndex),
        ...(hasLost ? { hasLost } : {}),
      }
    }
    case 'heartbeatRequest': {
      const { commit, readSequence, attested } = body.value
      return {
        type: 'heartbeatRequest',
        commit: toSafeInteger(commit),
        readSequence: toSafeInteger(readSequence),
        ...(attested === undefined ? {} : { attested: attestation(attested) }),
      }
    }
    case 'heartbeatResponse': {
      const { readSequence, clockMs, owingBoot } = body.value
      return {
        type: 'heartbeatResponse',
        readSequence: toSafeInteger(readSequence),
        clockMs: toSafeInteger(clockMs),
        ...(owingBoot === 0n ? {} : { owingBoot: toSafeInteger(owingBoot) }),
      }
    }
    case 'commitNotice':
      return { type: 'commitNotice', commit: toSafeInteger(body.value.commit) }
    case 'timeoutNow':
      return { type: 'timeoutNow' }
    default:
      return null
  }
}

function attestation({ boot, lastIndex }: WireAttestation): Attestation {
  return { boot: toSafeInteger(boot), lastIndex: toSafeInteger(lastIndex) }
}

/**
 * Checks two properties on which the Raft core relies: entries follow `previous` without a gap, and
 * their terms never decrease.
 */
function consecutive(entries: Entry[], previous: Position): Entry[] {
  let { index, term } = previous
  for (const entry of entries) {
    if (entry.index !== index + 1 || entry.term < term) {
      throw new RangeError(`entry ${entry.index} does not follow ${index}`)
    }
    index = entry.index
    term = entry.term
  }
  return entries
}

export function decodePosition(wirePosition: WirePosition | undefined): Position {
  if (wirePosition === undefined) return { term: 0, index: 0 }
  return { term: toSafeInteger(wirePosition.term), index: toSafeInteger(wirePosition.index) }
}

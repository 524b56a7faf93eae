import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'

import { LeaderCallSchema } from '../../../proto/gen/peer_pb.ts'
import { Problem } from '../../lib/problems.ts'
import type { PeerChannel } from '../peer-channel.ts'
import type { NodeId } from '../../raft/types.ts'
import { fieldsOf, initOf, jsonIn } from './peer-message-json.ts'

/** A request between the main threads of controllers, and its answer. */
export interface PeerMethod<Q extends DescMessage, A extends DescMessage> {
  readonly name: string
  readonly request: Q
  readonly answer: A
}

/**
 * Release 0.1 writes JSON and understands nothing else; whoever is asked in JSON answers in JSON.
 */
export type PeerForm = 'json' | 'protobuf'

/** Answer of release 0.1 to a message that is not JSON, before it looks at anything else. */
const NO_JSON = 'the message is no JSON'
/** No message begins with this byte: it would be a group, which proto3 has none of. */
const OPENING_BRACE = 0x7b

export function formOf(payload: Uint8Array): PeerForm {
  return payload[0] === OPENING_BRACE ? 'json' : 'protobuf'
}

export function encodePeerMessage<T extends DescMessage>(
  schema: T,
  init: MessageInitShape<T>,
  form: PeerForm = 'protobuf',
): Uint8Array {
  const message = create(schema, init)
  if (form === 'protobuf') return toBinary(schema, message)
  return new TextEncoder().encode(JSON.stringify(fieldsOf(schema, message)))
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function decodePeerMessage<T extends DescMessage>(
  schema: T,
  payload: Uint8Array,
): MessageShape<T> {
  try {
    if (formOf(payload) === 'protobuf') return fromBinary(schema, payload)
    return create(schema, initOf(schema, jsonIn(payload)))
  } catch (error) {
    if (error instanceof Problem) throw error
    throw new Problem('COULD_NOT_VALIDATE', { detail: `the message is no ${schema.name}` })
  }
}

/**
 * Asks a member; one of release 0.1 is asked again in the form that it understands.
 * @throws {Problem} as {@link PeerChannel.call}; COULD_NOT_VALIDATE when its answer cannot be read.
 */
export async function callPeer<Q extends DescMessage, A extends DescMessage>(
  peers: PeerChannel,
  to: NodeId,
  { name, request, answer }: PeerMethod<Q, A>,
  init: MessageInitShape<Q>,
  timeoutMs: number,
): Promise<MessageShape<A>> {
  const payload = await inEitherForm((form) =>
    peers.call(to, name, encodePeerMessage(request, init, form), timeoutMs),
  )
  return decodePeerMessage(answer, payload)
}

/** Safe for every request: one that is refused for its form has had no effect. */
export async function inEitherForm<T>(ask: (form: PeerForm) => Promise<T>): Promise<T> {
  try {
    return await ask('protobuf')
  } catch (error) {
    if (!(error instanceof Problem) || error.detail?.startsWith(NO_JSON) !== true) throw error
    return await ask('json')
  }
}

export interface OpenedLeaderCall<Q extends DescMessage> {
  readonly request: MessageShape<Q>
  readonly timeoutMs: number
}

/** A request that only the leader serves, with the time that it has. */
export function encodeLeaderCall<Q extends DescMessage>(
  schema: Q,
  init: MessageInitShape<Q>,
  timeoutMs: number,
  form: PeerForm,
): Uint8Array {
  if (form === 'json') {
    const request = fieldsOf(schema, create(schema, init))
    return new TextEncoder().encode(JSON.stringify({ request, timeoutMs }))
  }
  const request = encodePeerMessage(schema, init)
  return encodePeerMessage(LeaderCallSchema, { request, timeoutMs })
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function decodeLeaderCall<Q extends DescMessage>(
  schema: Q,
  payload: Uint8Array,
): OpenedLeaderCall<Q> {
  if (formOf(payload) === 'protobuf') {
    const { request, timeoutMs } = decodePeerMessage(LeaderCallSchema, payload)
    return { request: decodePeerMessage(schema, request), timeoutMs }
  }
  const { request, ...rest } = jsonIn(payload) as { readonly request?: unknown }
  const { timeoutMs } = create(LeaderCallSchema, initOf(LeaderCallSchema, rest))
  return { request: create(schema, initOf(schema, request)), timeoutMs }
}

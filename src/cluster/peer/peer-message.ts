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

/** A method that the main thread of one controller calls on the main thread of another. */
export interface PeerMethod<Q extends DescMessage, A extends DescMessage> {
  readonly name: string
  readonly request: Q
  readonly answer: A
}

export function encodePeerMessage<T extends DescMessage>(
  schema: T,
  init: MessageInitShape<T>,
): Uint8Array {
  return toBinary(schema, create(schema, init))
}

/**
 * Decodes a message of another controller.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function decodePeerMessage<T extends DescMessage>(
  schema: T,
  payload: Uint8Array,
): MessageShape<T> {
  try {
    return fromBinary(schema, payload)
  } catch {
    throw new Problem('COULD_NOT_VALIDATE', { detail: `the message is no ${schema.name}` })
  }
}

/**
 * Sends a request to a member.
 * @throws {Problem} as {@link PeerChannel.call}; COULD_NOT_VALIDATE when the response cannot be
 * decoded.
 */
export async function callPeer<Q extends DescMessage, A extends DescMessage>(
  peers: PeerChannel,
  to: NodeId,
  { name, request, answer }: PeerMethod<Q, A>,
  init: MessageInitShape<Q>,
  timeoutMs: number,
): Promise<MessageShape<A>> {
  const payload = await peers.call(to, name, encodePeerMessage(request, init), timeoutMs)
  return decodePeerMessage(answer, payload)
}

interface OpenedLeaderCall<Q extends DescMessage> {
  readonly request: MessageShape<Q>
  readonly timeoutMs: number
}

/** Encodes a request for the leader, with the time within which the leader must respond. */
export function encodeLeaderCall<Q extends DescMessage>(
  schema: Q,
  init: MessageInitShape<Q>,
  timeoutMs: number,
): Uint8Array {
  const request = encodePeerMessage(schema, init)
  return encodePeerMessage(LeaderCallSchema, { request, timeoutMs })
}

/**
 * Decodes a request for the leader.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function decodeLeaderCall<Q extends DescMessage>(
  schema: Q,
  payload: Uint8Array,
): OpenedLeaderCall<Q> {
  const { request, timeoutMs } = decodePeerMessage(LeaderCallSchema, payload)
  return { request: decodePeerMessage(schema, request), timeoutMs }
}

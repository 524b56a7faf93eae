import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { CreateCircuitAnswerSchema, CreateCircuitSchema } from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import {
  bytesMapValue,
  readBytesMap,
  readTextList,
  textMapValue,
} from '../../channel/header-maps.ts'
import { int32Value, readText, textValue } from '../../channel/headers.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { ClientClaim } from '../../ports/router-clients.ts'
import { routerMessage } from '../messages.ts'

/** Headers of requests for circuits and their answers. */
const header = {
  errorCode: 1014,
  peerData: 10,
  sessionToken: 11,
  circuitId: 11,
  fingerprints: 12,
  ingressAddress: 12,
  instanceId: 13,
  tags: 13,
  apiSessionToken: 14,
} as const

export type PeerData = ReadonlyMap<number, Uint8Array>

/** What a router asks for, whichever way it says it. */
export interface CircuitRequest extends Pick<
  ClientClaim,
  'sessionToken' | 'apiSessionToken' | 'fingerprints'
> {
  readonly instanceId: string
  readonly peerData: PeerData
}

/** A circuit as the router that asked for it is told of it. */
export interface CircuitAnswer {
  readonly circuitId: string
  readonly ingressAddress: string
  readonly peerData: PeerData
  readonly tags: Readonly<Record<string, string>>
}

/**
 * Null for one that is malformed.
 * @throws when the body of an older router is no such message.
 */
export function readCircuitRequest(message: ChannelMessage): CircuitRequest | null {
  return message.contentType === routerMessage.createCircuitOld
    ? requestInBody(message)
    : requestInHeaders(message)
}

function requestInBody({ body }: ChannelMessage): CircuitRequest {
  const { sessionToken, apiSessionToken, fingerprints, instanceId, peerData } = fromBinary(
    CreateCircuitSchema,
    body,
  )
  const data = new Map(Object.entries(peerData).map(([key, value]) => [Number(key), value]))
  return { sessionToken, apiSessionToken, fingerprints, instanceId, peerData: data }
}

function requestInHeaders({ headers }: ChannelMessage): CircuitRequest | null {
  const fingerprints = readTextList(headers, header.fingerprints)
  const peerData = readBytesMap(headers, header.peerData)
  if (fingerprints === null || peerData === null) return null
  return {
    sessionToken: readText(headers, header.sessionToken) ?? '',
    apiSessionToken: readText(headers, header.apiSessionToken) ?? '',
    instanceId: readText(headers, header.instanceId) ?? '',
    fingerprints,
    peerData,
  }
}

/** In the form of the request that it answers. */
export function circuitAnswer(
  { contentType }: ChannelMessage,
  { circuitId, ingressAddress, peerData, tags }: CircuitAnswer,
): Outgoing {
  if (contentType === routerMessage.createCircuitOld) {
    const answer = create(CreateCircuitAnswerSchema, {
      circuitId,
      address: ingressAddress,
      tags: { ...tags },
      peerData: Object.fromEntries(peerData),
    })
    const body = toBinary(CreateCircuitAnswerSchema, answer)
    return { contentType: routerMessage.createCircuitOldAnswer, body }
  }
  return {
    contentType: routerMessage.createCircuitAnswer,
    headers: new Map([
      [header.circuitId, textValue(circuitId)],
      [header.ingressAddress, textValue(ingressAddress)],
      [header.peerData, bytesMapValue(peerData)],
      [header.tags, textMapValue(tags)],
    ]),
  }
}

/** What routers take as the failure of whatever they asked for clients or for their own tunnel. */
export function edgeRefusal(code: number, text: string): Outgoing {
  return {
    contentType: routerMessage.error,
    headers: new Map([[header.errorCode, int32Value(code)]]),
    body: textValue(text),
  }
}

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateCircuitAnswerSchema,
  CreateCircuitSchema,
  CreateTunnelCircuitSchema,
} from '../../../proto/gen/router_pb.ts'
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

interface WantedCircuit {
  readonly instanceId: string
  readonly peerData: PeerData
}

/** For a client of the router, by its service session. */
export interface ClientCircuit
  extends WantedCircuit, Pick<ClientClaim, 'sessionToken' | 'apiSessionToken' | 'fingerprints'> {
  readonly of: 'client'
}

/** For the tunnel of the router itself. */
export interface TunnelCircuit extends WantedCircuit {
  readonly of: 'tunnel'
  readonly serviceName: string
}

/** What a router asks for, whichever way it says it. */
export type CircuitRequest = ClientCircuit | TunnelCircuit

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
  const { contentType } = message
  if (contentType === routerMessage.createTunnelCircuit) return requestOfTunnel(message)
  return contentType === routerMessage.createCircuitOld
    ? requestInBody(message)
    : requestInHeaders(message)
}

function requestOfTunnel({ body }: ChannelMessage): TunnelCircuit {
  const { serviceName, instanceId, peerData } = fromBinary(CreateTunnelCircuitSchema, body)
  return { of: 'tunnel', serviceName, instanceId, peerData: peerDataOf(peerData) }
}

function peerDataOf(peerData: Readonly<Record<number, Uint8Array>>): PeerData {
  return new Map(Object.entries(peerData).map(([key, value]) => [Number(key), value]))
}

function requestInBody({ body }: ChannelMessage): ClientCircuit {
  const { sessionToken, apiSessionToken, fingerprints, instanceId, peerData } = fromBinary(
    CreateCircuitSchema,
    body,
  )
  const said = { sessionToken, apiSessionToken, fingerprints, instanceId }
  return { of: 'client', ...said, peerData: peerDataOf(peerData) }
}

function requestInHeaders({ headers }: ChannelMessage): ClientCircuit | null {
  const fingerprints = readTextList(headers, header.fingerprints)
  const peerData = readBytesMap(headers, header.peerData)
  if (fingerprints === null || peerData === null) return null
  return {
    of: 'client',
    sessionToken: readText(headers, header.sessionToken) ?? '',
    apiSessionToken: readText(headers, header.apiSessionToken) ?? '',
    instanceId: readText(headers, header.instanceId) ?? '',
    fingerprints,
    peerData,
  }
}

/** Answers that are a body, by their request; all have the same form. */
const answersInBody: ReadonlyMap<number, number> = new Map([
  [routerMessage.createCircuitOld, routerMessage.createCircuitOldAnswer],
  [routerMessage.createTunnelCircuit, routerMessage.createTunnelCircuitAnswer],
])

/** In the form of the request that it answers. */
export function circuitAnswer(
  { contentType }: ChannelMessage,
  { circuitId, ingressAddress, peerData, tags }: CircuitAnswer,
): Outgoing {
  const inBody = answersInBody.get(contentType)
  if (inBody !== undefined) {
    const answer = create(CreateCircuitAnswerSchema, {
      circuitId,
      address: ingressAddress,
      tags: { ...tags },
      peerData: Object.fromEntries(peerData),
    })
    const body = toBinary(CreateCircuitAnswerSchema, answer)
    return { contentType: inBody, body }
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

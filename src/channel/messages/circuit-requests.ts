import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateCircuitAnswerSchema,
  CreateCircuitSchema,
  CreateFabricCircuitSchema,
  CreateTunnelCircuitSchema,
} from '../../../proto/gen/router_pb.ts'
import { bytesMapValue, readBytesMap, readTextList, textMapValue } from '../header-maps.ts'
import { int32Value, readText, textValue } from '../headers.ts'
import type { ChannelMessage, Outgoing } from '../frame.ts'
import { routerMessage } from './control.ts'

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
  identityId: 15,
  serviceId: 16,
  wantedId: 17,
  fabricIngressAddress: 1100,
} as const

/** Headers of the channel itself: no data of an end of a circuit goes by their keys. */
export const CHANNEL_HEADERS_MAX = 13

export type PeerData = ReadonlyMap<number, Uint8Array>

interface WantedCircuit {
  readonly instanceId: string
  readonly peerData: PeerData
}

/** A client of the router asks, by its service session or by its access token alone. */
export interface ClientCircuit extends WantedCircuit {
  readonly of: 'client'
  /** Token of the service session; '' where the client names the service itself. */
  readonly sessionToken: string
  /** Absent: the client shows a service session. */
  readonly serviceId?: string
  /** The client's identity, as the router knows it; absent: the router does not say. */
  readonly identityId?: string
  readonly apiSessionToken: string
  /** Hex SHA-1 of the certificates that the client showed. */
  readonly fingerprints: readonly string[]
  /** The id that the router has drawn for the circuit; absent: the controller draws it. */
  readonly circuitId?: string
}

/** For the tunnel of the router itself. */
export interface TunnelCircuit extends WantedCircuit {
  readonly of: 'tunnel'
  /** Names and ids that its service may have, in this order. */
  readonly services: readonly ({ readonly id: string } | { readonly name: string })[]
}

/** Request of a router for a circuit, in any of its forms. */
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
  if (contentType === routerMessage.fabricCircuit) return requestOfListener(message)
  return contentType === routerMessage.createCircuitOld
    ? requestInBody(message)
    : requestInHeaders(message)
}

function requestOfTunnel({ body }: ChannelMessage): TunnelCircuit {
  const { serviceName, instanceId, peerData } = fromBinary(CreateTunnelCircuitSchema, body)
  const services = [{ name: serviceName }]
  return { of: 'tunnel', services, instanceId, peerData: peerDataOf(peerData) }
}

/** A listener of a router makes a circuit of each connection; it names the service as it likes. */
function requestOfListener({ body }: ChannelMessage): TunnelCircuit {
  const { service: named, peerData } = fromBinary(CreateFabricCircuitSchema, body)
  const at = named.indexOf('@')
  const service = named.slice(at + 1)
  return {
    of: 'tunnel',
    services: [{ id: service }, { name: service }],
    instanceId: named.slice(0, Math.max(0, at)),
    peerData: peerDataOf(peerData),
  }
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

function requestInHeaders({ contentType, headers }: ChannelMessage): ClientCircuit | null {
  const fingerprints = readTextList(headers, header.fingerprints)
  const peerData = readBytesMap(headers, header.peerData)
  if (fingerprints === null || peerData === null) return null
  return {
    of: 'client',
    ...serviceIn(contentType, headers),
    apiSessionToken: readText(headers, header.apiSessionToken) ?? '',
    instanceId: readText(headers, header.instanceId) ?? '',
    fingerprints,
    peerData,
  }
}

function serviceIn(
  contentType: number,
  headers: ChannelMessage['headers'],
): Pick<ClientCircuit, 'sessionToken' | 'serviceId' | 'identityId' | 'circuitId'> {
  if (contentType !== routerMessage.createCircuitByName) {
    return { sessionToken: readText(headers, header.sessionToken) ?? '' }
  }
  const serviceId = readText(headers, header.serviceId) ?? ''
  const identityId = readText(headers, header.identityId) ?? ''
  const circuitId = readText(headers, header.wantedId) ?? ''
  return { sessionToken: '', serviceId, identityId, ...(circuitId === '' ? {} : { circuitId }) }
}

/** Answers that are a body, by their request; all have the same form. */
const answersInBody: ReadonlyMap<number, number> = new Map([
  [routerMessage.createCircuitOld, routerMessage.createCircuitOldAnswer],
  [routerMessage.createTunnelCircuit, routerMessage.createTunnelCircuitAnswer],
])

/** Answers in the form of the request that it answers. */
export function circuitAnswer(
  { contentType }: ChannelMessage,
  { circuitId, ingressAddress, peerData, tags }: CircuitAnswer,
): Outgoing {
  if (contentType === routerMessage.fabricCircuit) {
    return {
      contentType: routerMessage.fabricCircuitCreated,
      headers: new Map([
        ...Array.from(peerData).filter(([key]) => key > CHANNEL_HEADERS_MAX),
        [header.fabricIngressAddress, textValue(ingressAddress)],
      ]),
      body: textValue(circuitId),
    }
  }
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
  const isByName = contentType === routerMessage.createCircuitByName
  return {
    contentType: routerMessage[isByName ? 'createCircuitByNameAnswer' : 'createCircuitAnswer'],
    headers: new Map([
      [header.circuitId, textValue(circuitId)],
      [header.ingressAddress, textValue(ingressAddress)],
      [header.peerData, bytesMapValue(peerData)],
      [header.tags, textMapValue(tags)],
    ]),
  }
}

/** A refusal in the form of the request that it answers. */
export function circuitRefusal({ contentType }: ChannelMessage, code: number, text: string) {
  return contentType === routerMessage.fabricCircuit
    ? { contentType: routerMessage.fabricCircuitFailed, body: textValue(text) }
    : edgeRefusal(code, text)
}

/**
 * Refusal that routers take as the failure of whatever they asked for clients or for their own
 * tunnel.
 */
export function edgeRefusal(code: number, text: string): Outgoing {
  return {
    contentType: routerMessage.error,
    headers: new Map([[header.errorCode, int32Value(code)]]),
    body: textValue(text),
  }
}

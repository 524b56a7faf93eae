import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateCircuitAnswerSchema,
  CreateCircuitSchema,
  CreateFabricCircuitSchema,
  CreateTunnelCircuitSchema,
} from '../../../proto/gen/router_pb.ts'
import {
  bytesMapValue,
  readBytesMap,
  readTextList,
  textMapValue,
  textListValue,
} from '../header-maps.ts'
import { int32Value, readInt32, readText, textValue } from '../headers.ts'
import type { ChannelMessage, Outgoing } from '../frame.ts'
import { controlMessage } from './control.ts'
import { edgeHeader } from './edge.ts'
import type { Claim } from './clients.ts'
import { CHANNEL_HEADERS_MAX } from '../numbers.ts'

/** Headers of requests for circuits: `CreateCircuit…Header` of ctrl_msg. */
export const createCircuitHeader = {
  peerData: 10,
  sessionToken: 11,
  fingerprints: 12,
  terminatorInstanceId: 13,
  apiSessionToken: 14,
  identityId: 15,
  serviceId: 16,
  circuitId: 17,
} as const

/** Headers of their answers. */
export const createCircuitResponseHeader = {
  peerData: createCircuitHeader.peerData,
  circuitId: 11,
  address: 12,
  tags: 13,
} as const

/** Header of the answer to a request of a listener: the address of its end of the circuit. */
export const circuitSuccessHeader = { address: 1100 } as const

/** Headers of the refusal of a request that a router makes for a client or its tunnel. */
export const controlErrorHeader = {
  errorCode: edgeHeader.errorCode,
  circuitId: edgeHeader.circuitId,
  retryHint: 18,
} as const

/** Length of the text of a refusal that is kept: for a client, for the tunnel, for a listener. */
const TEXT_CHARACTERS_MAX = 1024
const REASON_BYTES_MAX = 200
const REASON_CHARACTERS_MAX = 200

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

/** A circuit for the tunnel of the router itself. */
export interface TunnelCircuit extends WantedCircuit {
  readonly of: 'tunnel'
  /** Names and ids that its service may have, in this order. */
  readonly services: readonly ({ readonly id: string } | { readonly name: string })[]
}

/** Request of a router for a circuit, in any of its forms. */
export type CircuitRequest = ClientCircuit | TunnelCircuit

/** A new circuit, in the answer to the router that requested it. */
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
  if (contentType === controlMessage.createTunnelCircuitV2) return requestOfTunnel(message)
  if (contentType === controlMessage.circuitRequest) return requestOfListener(message)
  return contentType === controlMessage.createCircuit
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
  const fingerprints = readTextList(headers, createCircuitHeader.fingerprints)
  const peerData = readBytesMap(headers, createCircuitHeader.peerData)
  if (fingerprints === null || peerData === null) return null
  return {
    of: 'client',
    ...serviceIn(contentType, headers),
    apiSessionToken: readText(headers, createCircuitHeader.apiSessionToken) ?? '',
    instanceId: readText(headers, createCircuitHeader.terminatorInstanceId) ?? '',
    fingerprints,
    peerData,
  }
}

function serviceIn(
  contentType: number,
  headers: ChannelMessage['headers'],
): Pick<ClientCircuit, 'sessionToken' | 'serviceId' | 'identityId' | 'circuitId'> {
  if (contentType !== controlMessage.createCircuitV3) {
    return { sessionToken: readText(headers, createCircuitHeader.sessionToken) ?? '' }
  }
  const serviceId = readText(headers, createCircuitHeader.serviceId) ?? ''
  const identityId = readText(headers, createCircuitHeader.identityId) ?? ''
  const circuitId = readText(headers, createCircuitHeader.circuitId) ?? ''
  return { sessionToken: '', serviceId, identityId, ...(circuitId === '' ? {} : { circuitId }) }
}

/** Answers that are a body, by their request; all have the same form. */
const answersInBody: ReadonlyMap<number, number> = new Map([
  [controlMessage.createCircuit, controlMessage.createCircuitResponse],
  [controlMessage.createTunnelCircuitV2, controlMessage.createTunnelCircuitV2Response],
])

/** Answers in the form of the request that it answers. */
export function circuitAnswer(
  { contentType }: ChannelMessage,
  { circuitId, ingressAddress, peerData, tags }: CircuitAnswer,
): Outgoing {
  if (contentType === controlMessage.circuitRequest) {
    return {
      contentType: controlMessage.circuitSuccess,
      headers: new Map([
        ...Array.from(peerData).filter(([key]) => key > CHANNEL_HEADERS_MAX),
        [circuitSuccessHeader.address, textValue(ingressAddress)],
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
  const isByName = contentType === controlMessage.createCircuitV3
  return {
    contentType: controlMessage[isByName ? 'createCircuitV3Response' : 'createCircuitV2Response'],
    headers: new Map([
      [createCircuitResponseHeader.circuitId, textValue(circuitId)],
      [createCircuitResponseHeader.address, textValue(ingressAddress)],
      [createCircuitResponseHeader.peerData, bytesMapValue(peerData)],
      [createCircuitResponseHeader.tags, textMapValue(tags)],
    ]),
  }
}

/** A refusal in the form of the request that it answers. */
export function circuitRefusal({ contentType }: ChannelMessage, code: number, text: string) {
  return contentType === controlMessage.circuitRequest
    ? { contentType: controlMessage.circuitFailed, body: textValue(text) }
    : edgeRefusal(code, text)
}

/**
 * Refusal that routers take as the failure of whatever they asked for clients or for their own
 * tunnel.
 */
export function edgeRefusal(code: number, text: string): Outgoing {
  return {
    contentType: controlMessage.error,
    headers: new Map([[controlErrorHeader.errorCode, int32Value(code)]]),
    body: textValue(text),
  }
}

/** A circuit that a router requests for a client. */
export interface RequestedCircuit extends Claim {
  readonly identityId: string
  /** The service that a client names; absent: it shows a session for one. */
  readonly serviceId?: string | undefined
  readonly instanceId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

export function createCircuitMessage(asked: RequestedCircuit): Outgoing {
  const { serviceId } = asked
  const wanted: readonly (readonly [number, Uint8Array])[] =
    serviceId === undefined
      ? [[createCircuitHeader.sessionToken, textValue(asked.sessionToken)]]
      : [
          [createCircuitHeader.identityId, textValue(asked.identityId)],
          [createCircuitHeader.serviceId, textValue(serviceId)],
        ]
  return {
    contentType: controlMessage[serviceId === undefined ? 'createCircuitV2' : 'createCircuitV3'],
    headers: new Map([
      ...wanted,
      [createCircuitHeader.fingerprints, textListValue([asked.fingerprint])],
      [createCircuitHeader.terminatorInstanceId, textValue(asked.instanceId)],
      [createCircuitHeader.peerData, bytesMapValue(asked.peerData)],
      [createCircuitHeader.apiSessionToken, textValue(asked.apiSessionToken)],
    ]),
  }
}

/** Outcome of a request that a router made for a client. */
export type CircuitOutcome =
  | {
      readonly kind: 'made'
      readonly id: string
      readonly address: string
      readonly peerData: ReadonlyMap<number, Uint8Array>
    }
  | {
      readonly kind: 'refused'
      readonly text: string
      /** Null: the controller gives none. */
      readonly code: number | null
      readonly retryHint: number
      readonly circuitId: string | null
    }

export function readCircuitAnswer({ contentType, headers, body }: ChannelMessage): CircuitOutcome {
  const id = readText(headers, createCircuitResponseHeader.circuitId)
  const address = readText(headers, createCircuitResponseHeader.address)
  const peerData = readBytesMap(headers, createCircuitResponseHeader.peerData)
  const isMade =
    contentType === controlMessage.createCircuitV2Response ||
    contentType === controlMessage.createCircuitV3Response
  if (isMade && id !== null && address !== null && peerData !== null) {
    return { kind: 'made', id, address, peerData }
  }
  const text = Buffer.from(body).toString('utf8').slice(0, TEXT_CHARACTERS_MAX)
  return {
    kind: 'refused',
    text: text === '' ? 'the controller refused the circuit' : text,
    code: readInt32(headers, controlErrorHeader.errorCode),
    retryHint: readInt32(headers, controlErrorHeader.retryHint) ?? 0,
    circuitId: readText(headers, controlErrorHeader.circuitId),
  }
}

export function createTunnelCircuitMessage(
  serviceName: string,
  instanceId: string,
  peerData: ReadonlyMap<number, Uint8Array>,
): Outgoing {
  const message = create(CreateTunnelCircuitSchema, {
    serviceName,
    instanceId,
    peerData: Object.fromEntries(peerData),
  })
  const body = toBinary(CreateTunnelCircuitSchema, message)
  return { contentType: controlMessage.createTunnelCircuitV2, body }
}

export interface CreatedCircuit {
  readonly id: string
  readonly address: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

/**
 * @returns why there is no circuit, as a text.
 * @throws when the bytes are no such message.
 */
export function readCreatedCircuit({ contentType, body }: ChannelMessage): CreatedCircuit | string {
  if (contentType !== controlMessage.createTunnelCircuitV2Response) {
    const text = Buffer.from(body.subarray(0, REASON_BYTES_MAX)).toString('utf8')
    return text.replaceAll(/[^\x20-\x7e]+/g, ' ') || `answered by a message ${contentType}`
  }
  const { circuitId, address, peerData } = fromBinary(CreateCircuitAnswerSchema, body)
  if (circuitId === '' || address === '') return 'the controller has answered without a circuit'
  const data = Object.entries(peerData).map(([key, value]) => [Number(key), value] as const)
  return { id: circuitId, address, peerData: new Map(data) }
}

/**
 * A request of a listener.
 * @param client the name that the client has given itself.
 */
export function listenerCircuitMessage(service: string, client: string): Outgoing {
  const request = create(CreateFabricCircuitSchema, { ingressId: client, service })
  return {
    contentType: controlMessage.circuitRequest,
    body: toBinary(CreateFabricCircuitSchema, request),
  }
}

/** @returns why there is no circuit, as a text. */
export function readListenerCircuitAnswer({
  contentType,
  headers,
  body,
}: ChannelMessage): { readonly id: string; readonly address: string } | string {
  const text = Buffer.from(body).toString('utf8')
  if (contentType !== controlMessage.circuitSuccess) {
    return text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, REASON_CHARACTERS_MAX) || 'refused'
  }
  const address = readText(headers, circuitSuccessHeader.address)
  if (text === '' || address === null) return 'the controller has answered without a circuit'
  return { id: text, address }
}

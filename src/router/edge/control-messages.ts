import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  ClientPostureSchema,
  ConnectEventsSchema,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  HealthEventSchema,
  ModelPrecedence,
  type PostureResponse,
  RemoveTerminatorsSchema,
  SessionRemovedSchema,
  UpdateEdgeTerminatorSchema,
  ValidateSessionsSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import { bytesMapValue, readBytesMap, textListValue } from '../../channel/header-maps.ts'
import { readInt32, readText, textValue } from '../../channel/headers.ts'
import type { ChannelMessage } from '../../channel/frame.ts'

/** Content types between a router and its controllers, of what concerns clients. */
export const edgeControlMessage = {
  result: 2,
  removeTerminators: 1038,
  error: 20_002,
  sessionRemoved: 20_102,
  apiSessionAdded: 20_200,
  apiSessionRemoved: 20_202,
  apiSessionHeartbeat: 20_203,
  requestSessions: 20_204,
  updateTerminator: 20_209,
  validateSessions: 20_213,
  healthEvent: 20_214,
  createTerminator: 20_216,
  createTerminatorAnswer: 20_217,
  createCircuit: 20_218,
  createCircuitAnswer: 20_219,
  createCircuitByName: 20_222,
  createCircuitByNameAnswer: 20_223,
  connectEvents: 20_415,
  clientPosture: 29_000,
} as const

const header = {
  peerData: 10,
  sessionToken: 11,
  circuitId: 11,
  fingerprints: 12,
  ingressAddress: 12,
  instanceId: 13,
  apiSessionToken: 14,
  identityId: 15,
  serviceId: 16,
  /** The place of a message in a whole state of several. */
  syncState: 1014,
  errorCode: 1014,
  retryHint: 18,
  failedCircuitId: 1026,
} as const

export interface ReceivedSession {
  readonly id: string
  readonly token: string
  readonly identityId: string
  /** Hex SHA-1 of the certificates that its client may show. */
  readonly fingerprints: ReadonlySet<string>
}

export interface SessionNews {
  readonly sessions: readonly ReceivedSession[]
  /** Part of all that there are; null: these come to what is known. */
  readonly part: SyncPart | null
}

/** One message of a whole state. */
export interface SyncPart {
  readonly id: string
  readonly sequence: number
  readonly isLast: boolean
}

/** @throws when the bytes are no such message. */
export function readSessionsAdded({ headers, body }: ChannelMessage): SessionNews {
  const { isFullState, apiSessions } = fromBinary(ApiSessionAddedSchema, body)
  const sessions = apiSessions.map(({ id, token, identityId, certFingerprints }) => ({
    id,
    token,
    identityId,
    fingerprints: new Set(certFingerprints.map((print) => print.toLowerCase())),
  }))
  return { sessions, part: isFullState ? syncPart(headers) : null }
}

/** A whole state without parts is one. */
function syncPart(headers: ChannelMessage['headers']): SyncPart {
  const whole = { id: '', sequence: 0, isLast: true }
  const text = readText(headers, header.syncState)
  if (text === null) return whole
  const state = JSON.parse(text) as Partial<Record<keyof SyncPart, unknown>> | null
  return {
    id: String(state?.id ?? ''),
    sequence: Number(state?.sequence ?? 0),
    isLast: state?.isLast === true,
  }
}

/** @throws when the bytes are no such message. */
export function readSessionsRemoved(body: Uint8Array) {
  return fromBinary(ApiSessionRemovedSchema, body)
}

/** Reads service sessions that are over. @throws when the bytes are no such message. */
export function readServiceSessionsRemoved(body: Uint8Array) {
  return fromBinary(SessionRemovedSchema, body)
}

export function heartbeatMessage(tokens: readonly string[]): Outgoing {
  const message = create(ApiSessionHeartbeatSchema, { tokens: [...tokens] })
  return {
    contentType: edgeControlMessage.apiSessionHeartbeat,
    body: toBinary(ApiSessionHeartbeatSchema, message),
  }
}

export function validateSessionsMessage(tokens: readonly string[]): Outgoing {
  const message = create(ValidateSessionsSchema, { sessionTokens: [...tokens] })
  return {
    contentType: edgeControlMessage.validateSessions,
    body: toBinary(ValidateSessionsSchema, message),
  }
}

/** A client, as this router shows it to a controller. */
export interface Claim {
  readonly sessionToken: string
  readonly apiSessionToken: string
  /** Hex SHA-1 of its certificate. */
  readonly fingerprint: string
}

export interface CircuitAsked extends Claim {
  readonly identityId: string
  /** The service that a client names; absent: it shows a session for one. */
  readonly serviceId?: string | undefined
  readonly instanceId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

export function createCircuitMessage(asked: CircuitAsked): Outgoing {
  const { serviceId } = asked
  const wanted: readonly (readonly [number, Uint8Array])[] =
    serviceId === undefined
      ? [[header.sessionToken, textValue(asked.sessionToken)]]
      : [
          [header.identityId, textValue(asked.identityId)],
          [header.serviceId, textValue(serviceId)],
        ]
  return {
    contentType:
      edgeControlMessage[serviceId === undefined ? 'createCircuit' : 'createCircuitByName'],
    headers: new Map([
      ...wanted,
      [header.fingerprints, textListValue([asked.fingerprint])],
      [header.instanceId, textValue(asked.instanceId)],
      [header.peerData, bytesMapValue(asked.peerData)],
      [header.apiSessionToken, textValue(asked.apiSessionToken)],
    ]),
  }
}

export function clientPostureMessage(
  { apiSessionToken, fingerprint }: Claim,
  responses: readonly PostureResponse[],
): Outgoing {
  const message = create(ClientPostureSchema, {
    apiSessionToken,
    fingerprints: [fingerprint],
    posture: { responses: [...responses] },
  })
  return {
    contentType: edgeControlMessage.clientPosture,
    body: toBinary(ClientPostureSchema, message),
  }
}

export type CircuitAnswered =
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

export function readCircuitAnswer({ contentType, headers, body }: ChannelMessage): CircuitAnswered {
  const id = readText(headers, header.circuitId)
  const address = readText(headers, header.ingressAddress)
  const peerData = readBytesMap(headers, header.peerData)
  const isMade =
    contentType === edgeControlMessage.createCircuitAnswer ||
    contentType === edgeControlMessage.createCircuitByNameAnswer
  if (isMade && id !== null && address !== null && peerData !== null) {
    return { kind: 'made', id, address, peerData }
  }
  const text = Buffer.from(body).toString('utf8').slice(0, TEXT_CHARACTERS_MAX)
  return {
    kind: 'refused',
    text: text === '' ? 'the controller refused the circuit' : text,
    code: readInt32(headers, header.errorCode),
    retryHint: readInt32(headers, header.retryHint) ?? 0,
    circuitId: readText(headers, header.failedCircuitId),
  }
}

const TEXT_CHARACTERS_MAX = 1024

export function createTerminatorMessage(
  asked: MessageInitShape<typeof CreateTerminatorV2Schema>,
): Outgoing {
  return {
    contentType: edgeControlMessage.createTerminator,
    body: toBinary(CreateTerminatorV2Schema, create(CreateTerminatorV2Schema, asked)),
  }
}

/** @throws when the bytes are no such message. */
export function readTerminatorAnswer(body: Uint8Array) {
  return fromBinary(CreateTerminatorV2AnswerSchema, body)
}

export function removeTerminatorsMessage(ids: readonly string[]): Outgoing {
  const message = create(RemoveTerminatorsSchema, { terminatorIds: [...ids] })
  return {
    contentType: edgeControlMessage.removeTerminators,
    body: toBinary(RemoveTerminatorsSchema, message),
  }
}

export function updateTerminatorMessage(
  asked: MessageInitShape<typeof UpdateEdgeTerminatorSchema>,
): Outgoing {
  return {
    contentType: edgeControlMessage.updateTerminator,
    body: toBinary(UpdateEdgeTerminatorSchema, create(UpdateEdgeTerminatorSchema, asked)),
  }
}

export function healthEventMessage(asked: MessageInitShape<typeof HealthEventSchema>): Outgoing {
  return {
    contentType: edgeControlMessage.healthEvent,
    body: toBinary(HealthEventSchema, create(HealthEventSchema, asked)),
  }
}

export interface IdentityConnects {
  readonly identityId: string
  readonly isConnected: boolean
  readonly connects: readonly {
    readonly atMs: number
    readonly from: string
    readonly to: string
  }[]
}

/** @param isWhole these and no others are connected. */
export function connectEventsMessage(
  identities: readonly IdentityConnects[],
  isWhole: boolean,
): Outgoing {
  const message = create(ConnectEventsSchema, {
    fullState: isWhole,
    events: identities.map(({ identityId, isConnected, connects }) => ({
      identityId,
      isConnected,
      connectTimes: connects.map(({ atMs, from, to }) => ({
        connectTime: BigInt(Math.floor(atMs)),
        srcAddr: from,
        dstAddr: to,
      })),
    })),
  })
  return {
    contentType: edgeControlMessage.connectEvents,
    body: toBinary(ConnectEventsSchema, message),
  }
}

/** The precedence of the number that clients say; the default for an unknown one. */
export function precedenceOf(number: number): ModelPrecedence {
  if (number === ModelPrecedence.REQUIRED) return ModelPrecedence.REQUIRED
  return number === ModelPrecedence.FAILED ? ModelPrecedence.FAILED : ModelPrecedence.DEFAULT
}

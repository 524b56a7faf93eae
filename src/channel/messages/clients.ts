import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  ClientPostureSchema,
  ConnectEventsSchema,
  type PostureResponse,
  SessionRemovedSchema,
  ValidateSessionsSchema,
} from '../../../proto/gen/router_pb.ts'
import { readText } from '../headers.ts'
import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { controlHeaderKey, controlContentType } from './control.ts'

/** An API session with which clients may connect to a router. */
export interface ClientApiSession {
  readonly id: string
  readonly token: string
  readonly identityId: string
  /** Hex SHA-1 of the certificates that the session's client may present. */
  readonly fingerprints: ReadonlySet<string>
}

/** API sessions to add. If `part` is set, they are one part of a full list. */
export interface SessionsUpdate {
  readonly sessions: readonly ClientApiSession[]
  /**
   * Position within a full list of sessions; null if the sessions are additions to the current
   * list.
   */
  readonly part: FullListPart | null
}

/** Position of one message within a full list that is sent in several messages. */
export interface FullListPart {
  readonly id: string
  readonly sequence: number
  readonly isLast: boolean
}

/** @throws when the bytes are not a valid message. */
export function readSessionsAdded({ headers, body }: ChannelMessage): SessionsUpdate {
  const { isFullState, apiSessions } = fromBinary(ApiSessionAddedSchema, body)
  const sessions = apiSessions.map(({ id, token, identityId, certFingerprints }) => ({
    id,
    token,
    identityId,
    fingerprints: new Set(certFingerprints.map((print) => print.toLowerCase())),
  }))
  return { sessions, part: isFullState ? syncPart(headers) : null }
}

/** A full list that is sent in a single message counts as the first and last part. */
function syncPart(headers: ChannelMessage['headers']): FullListPart {
  const whole = { id: '', sequence: 0, isLast: true }
  const text = readText(headers, controlHeaderKey.syncStrategyState)
  if (text === null) return whole
  const state = JSON.parse(text) as Partial<Record<keyof FullListPart, unknown>> | null
  return {
    id: String(state?.id ?? ''),
    sequence: Number(state?.sequence ?? 0),
    isLast: state?.isLast === true,
  }
}

/** @throws when the bytes are not a valid message. */
export function readSessionsRemoved(body: Uint8Array) {
  return fromBinary(ApiSessionRemovedSchema, body)
}

/** Reads the service sessions that have ended. @throws when the bytes are not a valid message. */
export function readServiceSessionsRemoved(body: Uint8Array) {
  return fromBinary(SessionRemovedSchema, body)
}

/**
 * Reports the API sessions that clients of the router use, so that these sessions do not expire.
 */
export function apiSessionHeartbeatMessage(tokens: readonly string[]): OutboundMessage {
  const message = create(ApiSessionHeartbeatSchema, { tokens: [...tokens] })
  return {
    contentType: controlContentType.apiSessionHeartbeat,
    body: toBinary(ApiSessionHeartbeatSchema, message),
  }
}

/** Asks a controller which of these service sessions have ended. */
export function validateSessionsMessage(tokens: readonly string[]): OutboundMessage {
  const message = create(ValidateSessionsSchema, { sessionTokens: [...tokens] })
  return {
    contentType: controlContentType.validateSessions,
    body: toBinary(ValidateSessionsSchema, message),
  }
}

/** How a router identifies a client to a controller. */
export interface RouterClientCredentials {
  readonly sessionToken: string
  readonly apiSessionToken: string
  /** Hex SHA-1 of the client's certificate. */
  readonly fingerprint: string
}

export function clientPostureMessage(
  { apiSessionToken, fingerprint }: RouterClientCredentials,
  responses: readonly PostureResponse[],
): OutboundMessage {
  const message = create(ClientPostureSchema, {
    apiSessionToken,
    fingerprints: [fingerprint],
    posture: { responses: [...responses] },
  })
  return {
    contentType: controlContentType.clientPosture,
    body: toBinary(ClientPostureSchema, message),
  }
}

/** Connections of one identity to a router, as reported to controllers. */
export interface IdentityConnections {
  readonly identityId: string
  readonly isConnected: boolean
  readonly connects: readonly {
    readonly atMs: number
    readonly from: string
    readonly to: string
  }[]
}

/** @param isWhole whether the list contains all connected identities. */
export function connectEventsMessage(
  identities: readonly IdentityConnections[],
  isWhole: boolean,
): OutboundMessage {
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
    contentType: controlContentType.connectEvents,
    body: toBinary(ConnectEventsSchema, message),
  }
}

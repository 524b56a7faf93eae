import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CircuitConfirmationSchema,
  DestinationType,
  FaultSchema,
  FaultSubject,
  RouteSchema,
  UnrouteSchema,
} from '../../../proto/gen/router_pb.ts'
import type { OutboundMessage } from '../frame.ts'
import { encodeFlag, encodeInt32, encodeText } from '../headers.ts'
import { CHANNEL_HEADERS_MAX, reflectedHeaderKeys } from '../numbers.ts'
import { messageContentLimits } from './limits.ts'
import type { DialErrorCode } from './dial-error.ts'
import { controlContentType } from './control.ts'

/** Headers in the response to a route: `RouteResult…Header` of OpenZiti's ctrl_msg. */
export const routeResultHeaderKey = {
  attempt: 1101,
  success: 1102,
  error: 1103,
  errorCode: 1104,
} as const
/** Tag of a route in which controllers send the ID of the dialing identity. */
const CLIENT_TAG = 'clientId'
/** Tags of a route that the router stores, because usage reports contain them. */
const KEPT_TAGS = [CLIENT_TAG, 'hostId', 'serviceId'] as const
const NANOSECONDS_A_MS = 1_000_000n
/**
 * Attempt number that marks a reroute; with it, a router keeps the endpoints of an existing
 * circuit.
 */
export const REROUTE_ATTEMPT = 99_969_996

/** One entry of a forwarding table: frames from `from` go to `to`. */
export interface ForwardingEntry {
  readonly from: string
  readonly to: string
  /** Type of the destination `to`. */
  readonly kind: 'start' | 'end' | 'link'
}

/** A controller's instruction to a router to carry a circuit. */
export interface Route {
  readonly circuitId: string
  readonly attempt: number
  readonly forwards: readonly ForwardingEntry[]
  readonly timeoutMs: number
  /** The identity that dials; '' if the controller did not send it. */
  readonly clientId: string
  /** IDs of the dialing identity, the hosting identity and the service; limited in length. */
  readonly tags: Readonly<Record<string, string>>
  /** Null if this router is not the egress router, or if the circuit is rerouted. */
  readonly egress: RouteEgress | null
  /** True if the circuit and both its endpoints exist already and only its path changes. */
  readonly isReroute: boolean
  /** Fields to log with the outcome of the route; null if the dialing identity is not traced. */
  readonly traced: Readonly<Record<string, string>> | null
}

/** Bit of the trace channel mask that requests logs of routes. */
const ESTABLISH_PATH = 2
const TRACE_FIELDS = ['traceId', 'sessionId', 'apiSessionId'] as const

/** The terminator that the egress router of a circuit dials. */
export interface RouteEgress {
  readonly binding: string
  readonly address: string
  readonly destination: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

const kinds: ReadonlyMap<DestinationType, ForwardingEntry['kind']> = new Map([
  [DestinationType.START, 'start'],
  [DestinationType.END, 'end'],
  [DestinationType.TO_LINK, 'link'],
])

/**
 * Whether the text is a valid circuit ID or endpoint address: not empty, and within the length
 * limit.
 */
export function isValidCircuitIdOrAddress(text: string): boolean {
  return text !== '' && text.length <= messageContentLimits.circuitNameCharactersMax
}

/**
 * Null when the route contains an invalid ID, address or destination type.
 * @throws when the bytes cannot be decoded.
 */
export function readRoute(body: Uint8Array): Route | null {
  const { circuitId, attempt, forwards, timeout, tags, egress, context } = fromBinary(
    RouteSchema,
    body,
  )
  const { fields = {}, channelMask = 0 } = context ?? {}
  const read = forwards.flatMap(({ srcAddress, dstAddress, dstType }): ForwardingEntry[] => {
    const kind = kinds.get(dstType)
    if (
      kind === undefined ||
      !isValidCircuitIdOrAddress(srcAddress) ||
      !isValidCircuitIdOrAddress(dstAddress)
    )
      return []
    return [{ from: srcAddress, to: dstAddress, kind }]
  })
  if (!isValidCircuitIdOrAddress(circuitId) || read.length < forwards.length) return null
  if (egress !== undefined && !isValidCircuitIdOrAddress(egress.address)) return null
  return {
    circuitId,
    attempt,
    forwards: read,
    isReroute: attempt === REROUTE_ATTEMPT,
    timeoutMs: Number(timeout / NANOSECONDS_A_MS),
    clientId: boundedTag(tags[CLIENT_TAG]),
    traced:
      (channelMask & ESTABLISH_PATH) === 0
        ? null
        : Object.fromEntries(TRACE_FIELDS.map((name) => [name, boundedTag(fields[name])])),
    tags: Object.fromEntries(
      KEPT_TAGS.map((name) => [name, boundedTag(tags[name])]).filter(([, value]) => value !== ''),
    ),
    egress:
      egress === undefined
        ? null
        : {
            binding: egress.binding,
            address: egress.address,
            destination: egress.destination,
            peerData: new Map(
              Object.entries(egress.peerData).map(([key, value]) => [Number(key), value]),
            ),
          },
  }
}

function boundedTag(value = ''): string {
  return value.slice(0, messageContentLimits.circuitNameCharactersMax)
}

/** @throws when the bytes are not a valid message. */
export function readUnroute(body: Uint8Array): { circuitId: string; isNow: boolean } {
  const { circuitId, now } = fromBinary(UnrouteSchema, body)
  return { circuitId, isNow: now }
}

/**
 * Ends a circuit at a router on its path.
 * @param isNow false: the router first delivers the data in flight.
 */
export function unrouteMessage(circuitId: string, isNow: boolean): OutboundMessage {
  const body = toBinary(UnrouteSchema, create(UnrouteSchema, { circuitId, now: isNow }))
  return { contentType: controlContentType.unroute, body }
}

/**
 * @param peerData the host's peer data; keys that the channel or the route result uses are omitted.
 */
export function routeSucceededMessage(
  { circuitId, attempt }: Pick<Route, 'circuitId' | 'attempt'>,
  peerData: ReadonlyMap<number, Uint8Array>,
): OutboundMessage {
  const headers = new Map<number, Uint8Array>()
  for (const [key, value] of peerData) {
    const isOfChannel = key <= CHANNEL_HEADERS_MAX
    const isReflected = key >= reflectedHeaderKeys.from && key <= reflectedHeaderKeys.to
    const isOfResult = key >= routeResultHeaderKey.attempt && key <= routeResultHeaderKey.errorCode
    if (!isOfChannel && !isReflected && !isOfResult) headers.set(key, value)
  }
  headers.set(routeResultHeaderKey.attempt, encodeInt32(attempt))
  headers.set(routeResultHeaderKey.success, encodeFlag(true))
  return { contentType: controlContentType.routeResult, headers, body: encodeText(circuitId) }
}

/**
 * A router's response that it could not set up its part of a circuit.
 * @param reason shown to operators.
 */
export function routeFailedMessage(
  { circuitId, attempt }: Pick<Route, 'circuitId' | 'attempt'>,
  code: DialErrorCode,
  reason: string,
): OutboundMessage {
  const headers = new Map([
    [routeResultHeaderKey.attempt, encodeInt32(attempt)],
    [
      routeResultHeaderKey.error,
      encodeText(reason.slice(0, messageContentLimits.reasonCharactersMax)),
    ],
    [routeResultHeaderKey.errorCode, Uint8Array.of(code)],
  ])
  return { contentType: controlContentType.routeResult, headers, body: encodeText(circuitId) }
}

/** Kinds of objects that a fault message can report, with their numbers in the protocol. */
const subjects = {
  ingress: FaultSubject.INGRESS,
  egress: FaultSubject.EGRESS,
  link: FaultSubject.LINK,
  forward: FaultSubject.FORWARD,
  unknownOwner: FaultSubject.UNKNOWN_OWNER_FORWARD,
} as const

/** @param ids IDs of the affected circuits, or the ID of a single link. */
export function fabricFaultMessage(
  subject: keyof typeof subjects,
  ids: readonly string[],
): OutboundMessage {
  const fault = create(FaultSchema, { subject: subjects[subject], id: ids.join(' ') })
  return { contentType: controlContentType.fault, body: toBinary(FaultSchema, fault) }
}

/** A circuit and the time for which it has carried no data. */
export interface IdleCircuit {
  readonly id: string
  readonly idleMs: number
}

/** Asks a controller whether these idle circuits still exist. */
export function circuitConfirmationMessage(circuits: readonly IdleCircuit[]): OutboundMessage {
  const message = create(CircuitConfirmationSchema, {
    circuitIds: circuits.map(({ id }) => id),
    idleTimes: Object.fromEntries(
      circuits.map(({ id, idleMs }) => [id, BigInt(Math.floor(idleMs)) * NANOSECONDS_A_MS]),
    ),
  })
  return {
    contentType: controlContentType.circuitConfirmation,
    body: toBinary(CircuitConfirmationSchema, message),
  }
}

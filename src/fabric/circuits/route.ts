import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import { DestinationType, RouteSchema } from '../../../proto/gen/router_pb.ts'
import type { OutboundMessage } from '../../channel/frame.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { CircuitPath } from './path.ts'

/**
 * Addresses of the two endpoints of a circuit, which appear in the forwarding tables of routers.
 */
export interface CircuitEndpointAddresses {
  readonly id: string
  /** Endpoint at the client's router. */
  readonly ingress: string
  /** Endpoint at the terminator's router. */
  readonly egress: string
}

export interface RouteParameters {
  readonly attempt: number
  readonly timeoutMs: number
  readonly tags: Readonly<Record<string, string>>
  /** Fields that routers log; absent if the circuit is not traced. */
  readonly trace?: { readonly fields: Readonly<Record<string, string>>; readonly channels: number }
  /** Target that the last router dials; null for a reroute. */
  readonly dial: {
    readonly binding: string
    readonly address: string
    readonly peerData: ReadonlyMap<number, Uint8Array>
  } | null
}

/** Nanoseconds in a millisecond. */
const NS = 1_000_000n

/** One route message for each router on the path, in path order. */
export function buildRouteMessages(
  ends: CircuitEndpointAddresses,
  path: CircuitPath,
  terms: RouteParameters,
): OutboundMessage[] {
  const { routerIds, links } = path
  return routerIds.map((_, at) => {
    const before = links[at - 1]
    const after = links[at]
    // The next hops in the direction of the client and of the host: each is a link, or the circuit
    // endpoint at this router.
    const inner = before === undefined ? ends.ingress : before.id
    const outer = after === undefined ? ends.egress : after.id
    const innerType = before === undefined ? DestinationType.START : DestinationType.TO_LINK
    const outerType = after === undefined ? DestinationType.END : DestinationType.TO_LINK
    const isLast = after === undefined
    const route: MessageInitShape<typeof RouteSchema> = {
      circuitId: ends.id,
      attempt: terms.attempt,
      forwards: [
        { srcAddress: inner, dstAddress: outer, dstType: outerType },
        { srcAddress: outer, dstAddress: inner, dstType: innerType },
      ],
      context:
        terms.trace === undefined
          ? {}
          : { fields: { ...terms.trace.fields }, channelMask: terms.trace.channels },
      timeout: BigInt(terms.timeoutMs) * NS,
      tags: { ...terms.tags },
      ...(isLast && terms.dial !== null
        ? {
            egress: {
              binding: terms.dial.binding,
              address: ends.egress,
              destination: terms.dial.address,
              peerData: Object.fromEntries(terms.dial.peerData),
            },
          }
        : {}),
    }
    const body = toBinary(RouteSchema, create(RouteSchema, route))
    return { contentType: controlContentType.route, body }
  })
}

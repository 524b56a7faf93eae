import { fromBinary } from '@bufbuild/protobuf'
import {
  CircuitConfirmationSchema,
  FaultSchema,
  FaultSubject,
  RouteSchema,
  RouterLinksSchema,
  UnrouteSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import { readText } from '../../../src/channel/headers.ts'
import { controlContentType } from '../../../src/channel/messages/control.ts'

const ERROR_HEADER = 1103
/** Names of fault subjects, by number. */
const SUBJECTS = Object.keys(FaultSubject)

/**
 * Text for the trace of a message about circuits and links between a router and a controller; null
 * for other messages.
 */
export function shownMessage(
  { contentType, headers, body }: ChannelMessage,
  circuit: (id: string) => string,
): string | null {
  switch (contentType) {
    case controlContentType.route: {
      const { circuitId, attempt, forwards, egress } = fromBinary(RouteSchema, body)
      const hops = forwards.map(({ srcAddress, dstAddress }) => {
        return `${srcAddress.slice(0, 4)}>${dstAddress.slice(0, 4)}`
      })
      return `route ${circuit(circuitId)} attempt ${attempt} ${hops.join()}${egress === undefined ? '' : ' dial'}`
    }
    case controlContentType.unroute: {
      const { circuitId, now } = fromBinary(UnrouteSchema, body)
      return `unroute ${circuit(circuitId)}${now ? ' now' : ''}`
    }
    case controlContentType.routeResult: {
      const error = readText(headers, ERROR_HEADER)
      return `route result ${circuit(Buffer.from(body).toString())} ${error ?? 'done'}`
    }
    case controlContentType.circuitConfirmation: {
      const { circuitIds } = fromBinary(CircuitConfirmationSchema, body)
      return `confirmation ${circuitIds.map(circuit).join()}`
    }
    case controlContentType.fault: {
      const { subject, id } = fromBinary(FaultSchema, body)
      const isOfLink = subject === FaultSubject.LINK || subject === FaultSubject.LINK_DUPLICATE
      const shown = isOfLink ? id.slice(0, 4) : id.split(' ').map(circuit).join()
      return `fault ${SUBJECTS[subject]} ${shown}`
    }
    case controlContentType.routerLinks: {
      const { links, fullRefresh } = fromBinary(RouterLinksSchema, body)
      const ids = links.map(({ id, destRouterId }) => `${id.slice(0, 4)} to ${destRouterId}`)
      return `links ${fullRefresh ? 'all ' : ''}${ids.join()}`
    }
    default:
      return null
  }
}

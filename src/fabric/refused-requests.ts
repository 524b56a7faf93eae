import type { ChannelMessage, Outgoing } from '../channel/frame.ts'
import type { Channel } from '../channel/channel.ts'
import { contentType, headerKey } from '../channel/numbers.ts'
import { edgeRefusal } from '../channel/messages/circuit-requests.ts'
import { controlMessage } from '../channel/messages/control.ts'
import { edgeErrorCode } from '../channel/messages/edge.ts'

/** Messages without an answer that no duty handles. */
const notices: ReadonlySet<number> = new Set([
  contentType.result,
  controlMessage.traceEvent,
  controlMessage.inspectResponse,
  controlMessage.validateTerminatorsV2Response,
  controlMessage.alerts,
  controlMessage.clientHello,
  controlMessage.error,
  controlMessage.validateDataStateResponse,
])

/**
 * Tunnel requests of a router that does not follow the data model: for an API session, circuits,
 * services and terminators. Routers connected to this controller follow the data model.
 */
const oldTunnelRequests: ReadonlySet<number> = new Set([
  controlMessage.createApiSession,
  controlMessage.createCircuitForService,
  controlMessage.listServices,
  controlMessage.createTunnelTerminator,
])

/**
 * Refuses a request that no duty handles, in the form that its sender accepts as a refusal. Without
 * an answer, the router would wait until its timeout.
 */
export function refuse(channel: Channel, message: ChannelMessage): void {
  const { contentType, headers } = message
  if (notices.has(contentType) || headers.has(headerKey.replyFor)) return
  const refusal = refusalOf(message)
  if (refusal === null) channel.replyResult(message, false, NOT_SUPPORTED)
  else channel.reply(message, refusal)
}

const NOT_SUPPORTED = 'not supported'
const NO_TUNNEL = 'tunnels are served by the data model of routers alone'

/** Null for the generic refusal. */
function refusalOf(message: ChannelMessage): Outgoing | null {
  const { contentType } = message
  if (oldTunnelRequests.has(contentType))
    return edgeRefusal(edgeErrorCode.tunnelingNotEnabled, NO_TUNNEL)
  return null
}

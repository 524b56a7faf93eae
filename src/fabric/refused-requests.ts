import type { ChannelMessage, Outgoing } from '../channel/frame.ts'
import type { Channel } from '../channel/channel.ts'
import { contentType, headerKey } from '../channel/numbers.ts'
import { edgeRefusal } from '../channel/messages/circuit-requests.ts'
import { controlMessage } from '../channel/messages/control.ts'
import { edgeErrorCode } from '../channel/messages/edge.ts'

/** Messages that their sender waits for no answer to, and no duty takes. */
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
 * Requests of the tunnel in a router that does not follow the data model: for its API session, for
 * circuits, services and terminators by it. A router that is connected here follows it.
 */
const oldTunnelRequests: ReadonlySet<number> = new Set([
  controlMessage.createApiSession,
  controlMessage.createCircuitForService,
  controlMessage.listServices,
  controlMessage.createTunnelTerminator,
])

/**
 * A router waits out its time where it hears nothing: each request that no duty takes is refused,
 * in the form that its sender takes as a refusal of that request.
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

/** Null: the generic one. */
function refusalOf(message: ChannelMessage): Outgoing | null {
  const { contentType } = message
  if (oldTunnelRequests.has(contentType))
    return edgeRefusal(edgeErrorCode.tunnelingNotEnabled, NO_TUNNEL)
  return null
}

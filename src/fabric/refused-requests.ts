import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateTerminatorResult,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
} from '../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../channel/frame.ts'
import type { Channel, Outgoing } from '../channel/channel.ts'
import { textValue } from '../channel/headers.ts'
import { headerKey } from '../channel/numbers.ts'
import { edgeRefusal } from './circuits/circuit-request.ts'
import { DO_NOT_RETRY, INTERNAL, NO_TUNNELS } from './clients/client-errors.ts'
import { routerMessage } from './messages.ts'

/** What its sender waits for no answer to, and no duty takes. */
const notices: ReadonlySet<number> = new Set([
  routerMessage.result,
  routerMessage.traceEvent,
  routerMessage.inspectAnswer,
  routerMessage.terminatorStates,
  routerMessage.alerts,
  routerMessage.clientHello,
  routerMessage.error,
  routerMessage.modelValidation,
])

/** Requests of the tunnel in a router: it dials and hosts by itself. */
const tunnelRequests: ReadonlySet<number> = new Set([
  routerMessage.createTunnelCircuit,
  20_400,
  20_402,
  20_404,
  20_406,
  20_408,
  20_410,
  20_412,
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
const NO_TUNNEL = 'this controller serves no tunnels of routers'

/** Null: the generic one. */
function refusalOf(message: ChannelMessage): Outgoing | null {
  const { contentType } = message
  if (contentType === routerMessage.createTunnelTerminator) return tunnelTerminatorRefusal(message)
  if (tunnelRequests.has(contentType)) return edgeRefusal(NO_TUNNELS, NO_TUNNEL)
  if (contentType === routerMessage.createCircuitByName) {
    return edgeRefusal(INTERNAL, NOT_SUPPORTED)
  }
  if (contentType === routerMessage.fabricCircuit) {
    return { contentType: routerMessage.fabricCircuitFailed, body: textValue(NOT_SUPPORTED) }
  }
  return null
}

/** Routers find the terminator that it is about by its id. */
function tunnelTerminatorRefusal({ body }: ChannelMessage): Outgoing {
  const { address: terminatorId, startTime } = fromBinary(CreateTunnelTerminatorSchema, body)
  const answer = create(CreateTunnelTerminatorAnswerSchema, {
    terminatorId,
    startTime,
    msg: NO_TUNNEL,
    errorCode: NO_TUNNELS,
    retryHint: DO_NOT_RETRY,
    result: CreateTerminatorResult.FAILED_OTHER,
  })
  return {
    contentType: routerMessage.createTunnelTerminatorAnswer,
    body: toBinary(CreateTunnelTerminatorAnswerSchema, answer),
  }
}

import { CreateTerminatorResult } from '../../../proto/gen/router_pb.ts'
import type { ClientAccessFault } from '../../ports/router-clients.ts'
import type { TunnelAccessFault } from '../../ports/router-tunnels.ts'
import type { TerminatorCreateResult } from '../../channel/messages/terminators.ts'
import { edgeErrorCode, INVALID_SESSION_MESSAGE, retryHint } from '../../channel/messages/edge.ts'

/**
 * Error codes for clients ({@link edgeErrorCode}), by the reason for which a controller refuses the
 * client's access.
 */
export const clientAccessFaultCodes: Readonly<Record<ClientAccessFault, number>> = {
  apiSession: edgeErrorCode.invalidApiSession,
  session: edgeErrorCode.invalidSession,
  sessionType: edgeErrorCode.wrongSessionType,
  router: edgeErrorCode.invalidEdgeRouterForSession,
  service: edgeErrorCode.invalidService,
  access: edgeErrorCode.accessDenied,
  posture: edgeErrorCode.postureCheckFailed,
}

/**
 * Code for a refused dial. A client that names the service itself gets the same code for a service
 * that does not exist as for one that it may not dial.
 */
export function dialRefusalErrorCode(fault: ClientAccessFault, isByService: boolean): number {
  return clientAccessFaultCodes[isByService && fault === 'access' ? 'service' : fault]
}

/** Refusal message for the client. */
export function clientAccessRefusalMessage(use: 'dial' | 'bind', fault: ClientAccessFault): string {
  return fault === 'session' ? INVALID_SESSION_MESSAGE : `${use} refused: ${fault}`
}

/**
 * Retry hint for a refused hosting request. With `start over`, the client requests a new service
 * session, about which a controller decides. With `not retriable`, the client may close its
 * listener until the client restarts.
 */
export const clientAccessFaultRetryHints: Readonly<Record<ClientAccessFault, number>> = {
  apiSession: retryHint.startOver,
  session: retryHint.startOver,
  sessionType: retryHint.startOver,
  router: retryHint.startOver,
  service: retryHint.notRetriable,
  access: retryHint.startOver,
  posture: retryHint.startOver,
}

/** Result for a router that requested a terminator which its client may not have. */
export function refusedTerminator(fault: ClientAccessFault): TerminatorCreateResult {
  return {
    result: CreateTerminatorResult.FAILED_OTHER,
    errorCode: clientAccessFaultCodes[fault],
    retryHint: clientAccessFaultRetryHints[fault],
    msg: clientAccessRefusalMessage('bind', fault),
  }
}

export const tunnelAccessFaultCodes: Readonly<Record<TunnelAccessFault, number>> = {
  tunnel: edgeErrorCode.tunnelingNotEnabled,
  service: clientAccessFaultCodes.service,
  router: clientAccessFaultCodes.router,
  access: clientAccessFaultCodes.access,
  posture: clientAccessFaultCodes.posture,
}

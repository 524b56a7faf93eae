import type { ClaimFault } from '../../ports/router-clients.ts'
import type { TunnelFault } from '../../ports/router-tunnels.ts'
import { edgeErrorCode } from '../../channel/messages/edge.ts'

/** Codes of {@link edgeErrorCode} by the fault of a claim. */
export const claimFaultCodes: Readonly<Record<ClaimFault, number>> = {
  apiSession: edgeErrorCode.invalidApiSession,
  session: edgeErrorCode.invalidSession,
  sessionType: edgeErrorCode.wrongSessionType,
  router: edgeErrorCode.invalidEdgeRouterForSession,
  service: edgeErrorCode.invalidService,
  access: edgeErrorCode.accessDenied,
  posture: edgeErrorCode.postureCheckFailed,
}

export const tunnelFaultCodes: Readonly<Record<TunnelFault, number>> = {
  tunnel: edgeErrorCode.tunnelingNotEnabled,
  service: claimFaultCodes.service,
  router: claimFaultCodes.router,
  access: claimFaultCodes.access,
  posture: claimFaultCodes.posture,
}

import type { ClaimFault } from '../../ports/router-clients.ts'
import type { TunnelFault } from '../../ports/router-tunnels.ts'

/** Codes that routers and their clients are told. */
export const INTERNAL = 1
export const NO_TUNNELS = 7
export const INVALID_TERMINATOR = 8
export const ENCRYPTION_DATA_MISSING = 11
export const INVALID_INSTANCE = 13

export const claimFaultCodes: Readonly<Record<ClaimFault, number>> = {
  apiSession: 2,
  session: 3,
  sessionType: 4,
  router: 5,
  service: 6,
  access: 14,
  posture: 15,
}

export const tunnelFaultCodes: Readonly<Record<TunnelFault, number>> = {
  tunnel: NO_TUNNELS,
  service: claimFaultCodes.service,
  router: claimFaultCodes.router,
  access: claimFaultCodes.access,
  posture: claimFaultCodes.posture,
}

/** Advice to a router about trying again. */
export const DO_NOT_RETRY = 3

import { routerLimits } from '../limits.ts'
import {
  type CircuitFailureCause,
  type DialResult,
  routerFailureCauses as causes,
} from '../../ports/observations.ts'

/** Why a path could not be set up. */
export interface RouteFault {
  /** Message for the client and the log. */
  readonly text: string
  readonly cause: CircuitFailureCause
}

export const NO_HOST_FAULT: RouteFault = {
  text: 'the service has no host that can be reached',
  cause: 'NO_ONLINE_TERMINATORS',
}
export const ROUTE_TIMEOUT_FAULT: RouteFault = {
  text: 'a router did not answer in time',
  cause: 'ROUTER_RESPONSE_TIMEOUT',
}
const GENERIC = causes[0]
export const ROUTER_DISCONNECTED_FAULT: RouteFault = {
  text: 'a router on the way is gone',
  cause: GENERIC,
}

/** @param code the error code of the router, one byte; undefined if it sent none. */
export function parseRouteFault(text: string | null, code: Uint8Array | undefined): RouteFault {
  const cause = causes[code?.[0] ?? 0] ?? GENERIC
  const reported = text?.slice(0, routerLimits.routerTextCharactersMax)
  return { text: reported ?? 'a router could not lay the way', cause }
}

/** True if the terminator's router does not know the terminator. */
export function isUnknownHostFault({ cause }: RouteFault): boolean {
  return cause === causes[1]
}

/** True if the hosting program refused the dial; a retry would not help. */
export function isHostRefusalFault({ cause }: RouteFault): boolean {
  return cause === causes[5]
}

const results: ReadonlyMap<string, DialResult> = new Map([
  [ROUTE_TIMEOUT_FAULT.cause, 'timeout'],
  [causes[1], 'terminatorInvalid'],
  [causes[2], 'terminatorMisconfigured'],
  [causes[3], 'terminatorTimeout'],
  [causes[4], 'terminatorRefused'],
])

/** How a failed attempt counts in the dial statistics of the terminator. */
export function failedDialResult({ cause }: RouteFault): DialResult {
  return results.get(cause) ?? 'other'
}

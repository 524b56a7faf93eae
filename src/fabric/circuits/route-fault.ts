import { routerLimits } from '../limits.ts'
import type { DialResult } from '../../ports/live-facts.ts'

/** Why a path could not be routed. */
export interface RouteFault {
  /** For the client and the log. */
  readonly text: string
  /** Cause, as named by OpenZiti. */
  readonly cause: string
}

export const NO_HOST: RouteFault = {
  text: 'the service has no host that can be reached',
  cause: 'NO_ONLINE_TERMINATORS',
}
export const NO_ANSWER: RouteFault = {
  text: 'a router did not answer in time',
  cause: 'ROUTER_RESPONSE_TIMEOUT',
}
const GENERIC = 'ROUTER_ERR_GENERIC'
export const ROUTER_GONE: RouteFault = { text: 'a router on the way is gone', cause: GENERIC }

/** Causes by the error code of a router. */
const causes = [
  GENERIC,
  'ROUTER_ERR_INVALID_TERMINATOR',
  'ROUTER_ERR_MISCONFIGURED_TERMINATOR',
  'ROUTER_ERR_DIAL_TIMED_OUT',
  'ROUTER_ERR_CONN_REFUSED',
  'ROUTER_ERR_REJECTED_BY_APPLICATION',
  'ROUTER_ERR_DNS_RESOLUTION_FAILED',
  'ROUTER_ERR_PORT_NOT_ALLOWED',
  'ROUTER_ERR_INVALID_LINK_DESTINATION',
  'ROUTER_ERR_RESOURCES_NOT_AVAILABLE',
] as const

/** @param code one byte, if the router sends it. */
export function routeFault(text: string | null, code: Uint8Array | undefined): RouteFault {
  const cause = causes[code?.[0] ?? 0] ?? GENERIC
  const reported = text?.slice(0, routerLimits.routerTextCharactersMax)
  return { text: reported ?? 'a router could not lay the way', cause }
}

/** The terminator's router does not know the host. */
export function isInvalidHost({ cause }: RouteFault): boolean {
  return cause === causes[1]
}

/** The hosting program refused the dial; retrying would not help. */
export function isRefusedByProgram({ cause }: RouteFault): boolean {
  return cause === causes[5]
}

const results: ReadonlyMap<string, DialResult> = new Map([
  [NO_ANSWER.cause, 'timeout'],
  [causes[1], 'terminatorInvalid'],
  [causes[2], 'terminatorMisconfigured'],
  [causes[3], 'terminatorTimeout'],
  [causes[4], 'terminatorRefused'],
])

/** Result under which a failed attempt is counted. */
export function failedDialResult({ cause }: RouteFault): DialResult {
  return results.get(cause) ?? 'other'
}

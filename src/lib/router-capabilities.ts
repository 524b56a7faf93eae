/** A router that sends the hello headers of routers since 2.0. */
export const MULTI_CHANNEL = 1
/** A router that accepts a service name instead of a service session; since 2.1. */
export const CONNECT_BY_SERVICE = 2
const POSTURE_CHECKS = 5
/**
 * Only Flotilla routers announce it: they renew their certificates when a third of their time is
 * left. Far from the bits of OpenZiti, which ignores it.
 */
export const RENEWS_AT_A_THIRD = 200

/**
 * Capabilities of OpenZiti routers for clients, by the bits of the mask in their hello. Other bits
 * concern only routers and controllers, or belong to versions that are unknown here.
 */
const names: ReadonlyMap<number, string> = new Map([
  [MULTI_CHANNEL, 'MULTI_CHANNEL'],
  [CONNECT_BY_SERVICE, 'CONNECT_V2'],
  [4, 'SERVICE_SUBSCRIPTIONS'],
  [POSTURE_CHECKS, 'POSTURE_CHECKS'],
  [6, 'BIND_SUCCESS'],
])

/** All capability names, in the order of their bits. */
export const routerCapabilities: readonly string[] = [...names.values()]

/** A JSON number holds at most 53 bits exactly. */
const MASK_BITS_MAX = 53

/**
 * OpenZiti routers evaluate the posture data of OIDC clients since 2.0 and announce it since 2.1.
 * Flotilla routers pass the data on: they connect by service, and do not announce that they
 * evaluate it.
 */
export function evaluatesPosture(bits: ReadonlySet<number>): boolean {
  return bits.has(POSTURE_CHECKS) || (bits.has(MULTI_CHANNEL) && !bits.has(CONNECT_BY_SERVICE))
}

/** Whether the router renews its certificate when a third of the validity period is left. */
export function renewsWithAThirdLeft(bits: ReadonlySet<number>): boolean {
  return bits.has(RENEWS_AT_A_THIRD)
}

/** Names of the known capabilities, in the order of OpenZiti's bits. */
export function capabilityNames(bits: readonly number[]): string[] {
  return [...names].flatMap(([bit, name]) => (bits.includes(bit) ? [name] : []))
}

/** Capabilities as a bit mask, in a number. */
export function capabilityMask(bits: readonly number[]): number {
  const own = new Set(bits.filter((bit) => bit < MASK_BITS_MAX))
  return [...own].reduce((mask, bit) => mask + 2 ** bit, 0)
}

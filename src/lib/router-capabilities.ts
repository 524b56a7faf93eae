/** The router sends the hello headers that OpenZiti routers have sent since version 2.0. */
export const MULTI_CHANNEL = 1
/**
 * The router accepts a service name instead of a service session, as OpenZiti routers have done
 * since version 2.1.
 */
export const CONNECT_BY_SERVICE = 2
const POSTURE_CHECKS = 5
/**
 * The router renews its certificates when a third of their lifetime is left. Only Flotilla routers
 * announce this bit. It is far from the bits that OpenZiti uses, and OpenZiti ignores it.
 */
export const RENEWS_WITH_A_THIRD_LEFT = 200

/**
 * Capabilities of OpenZiti routers that concern clients, by their bit in the mask of the hello
 * message. The table lacks bits that concern only routers and controllers, and bits of newer
 * OpenZiti versions.
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

/** A JSON number represents at most 53 bits exactly. */
const MASK_BITS_MAX = 53

/**
 * Whether the router evaluates the posture data of OIDC clients. OpenZiti routers have done so
 * since 2.0 and have announced it since 2.1. Flotilla routers forward the data instead: they
 * connect by service name, and do not announce that they evaluate posture data.
 */
export function evaluatesPosture(bits: ReadonlySet<number>): boolean {
  return bits.has(POSTURE_CHECKS) || (bits.has(MULTI_CHANNEL) && !bits.has(CONNECT_BY_SERVICE))
}

/** Whether the router renews its certificate when a third of the validity period is left. */
export function renewsWithAThirdLeft(bits: ReadonlySet<number>): boolean {
  return bits.has(RENEWS_WITH_A_THIRD_LEFT)
}

/** Names of the known capabilities, in the order of OpenZiti's bits. */
export function capabilityNames(bits: readonly number[]): string[] {
  return [...names].flatMap(([bit, name]) => (bits.includes(bit) ? [name] : []))
}

/** Capabilities as a bit mask, in a number; bits that a number cannot represent are omitted. */
export function capabilityMask(bits: readonly number[]): number {
  const own = new Set(bits.filter((bit) => bit < MASK_BITS_MAX))
  return [...own].reduce((mask, bit) => mask + 2 ** bit, 0)
}

/** A router whose hello has the headers of routers from 2.0 on. */
export const MULTI_CHANNEL = 1
/** A router that takes the name of a service in place of a service session; from 2.1 on. */
export const CONNECT_BY_SERVICE = 2
const POSTURE_CHECKS = 5

/**
 * Capabilities of routers of the API family for clients, by the bits of the mask in their hello;
 * other bits are between them and controllers, or of a version that is not known here.
 */
const names: ReadonlyMap<number, string> = new Map([
  [MULTI_CHANNEL, 'MULTI_CHANNEL'],
  [CONNECT_BY_SERVICE, 'CONNECT_V2'],
  [4, 'SERVICE_SUBSCRIPTIONS'],
  [POSTURE_CHECKS, 'POSTURE_CHECKS'],
  [6, 'BIND_SUCCESS'],
])

/** Every one that a router can be shown with, by its bit. */
export const routerCapabilities: readonly string[] = [...names.values()]

/** A number of JSON tells no more bits apart. */
const MASK_BITS_MAX = 53

/**
 * Routers of the family judge what clients of OIDC report on their devices from 2.0 on, and say so
 * from 2.1 on. Routers of this product pass the reports on: they connect by service, and do not say
 * that they judge.
 */
export function judgesPosture(bits: ReadonlySet<number>): boolean {
  return bits.has(POSTURE_CHECKS) || (bits.has(MULTI_CHANNEL) && !bits.has(CONNECT_BY_SERVICE))
}

export function capabilityNames(bits: readonly number[]): string[] {
  return [...names].flatMap(([bit, name]) => (bits.includes(bit) ? [name] : []))
}

export function capabilityMask(bits: readonly number[]): number {
  const own = new Set(bits.filter((bit) => bit < MASK_BITS_MAX))
  return [...own].reduce((mask, bit) => mask + 2 ** bit, 0)
}

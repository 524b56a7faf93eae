/** A router that takes the name of a service in place of a service session. */
export const CONNECT_BY_SERVICE = 2
/** A router that judges what clients of OIDC tell it of their devices. */
export const JUDGES_POSTURE = 5

/**
 * What routers of the API family can do for clients, by the bits of the mask in their hello; other
 * bits are between them and controllers, or of a version that is not known here.
 */
const names: ReadonlyMap<number, string> = new Map([
  [1, 'MULTI_CHANNEL'],
  [CONNECT_BY_SERVICE, 'CONNECT_V2'],
  [4, 'SERVICE_SUBSCRIPTIONS'],
  [JUDGES_POSTURE, 'POSTURE_CHECKS'],
  [6, 'BIND_SUCCESS'],
])

/** Every one that a router can be shown with, by its bit. */
export const routerCapabilities: readonly string[] = [...names.values()]

/** A number of JSON tells no more bits apart. */
const MASK_BITS_MAX = 53

export function capabilityNames(bits: readonly number[]): string[] {
  return [...names].flatMap(([bit, name]) => (bits.includes(bit) ? [name] : []))
}

export function capabilityMask(bits: readonly number[]): number {
  const own = new Set(bits.filter((bit) => bit < MASK_BITS_MAX))
  return [...own].reduce((mask, bit) => mask + 2 ** bit, 0)
}

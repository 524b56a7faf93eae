/** Bits of the flags of a network interface, as Go numbers them and routers report them. */
export const interfaceFlag = {
  up: 1,
  broadcast: 2,
  loopback: 4,
  pointToPoint: 8,
  multicast: 16,
  running: 32,
} as const

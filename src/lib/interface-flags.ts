/** Flag bits of a network interface, with the numbers that Go uses and routers report. */
export const interfaceFlag = {
  up: 1,
  broadcast: 2,
  loopback: 4,
  pointToPoint: 8,
  multicast: 16,
  running: 32,
} as const

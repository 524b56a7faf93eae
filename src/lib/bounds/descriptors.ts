import { readFileSync } from 'node:fs'

import { FairShare } from './fair-share.ts'

/** File descriptors of the process: when there is none left, no file and no connection opens. */
export const descriptorLimits = {
  /**
   * Kept from clients and routers: for the log, the state, peers and whatever else is opened. Half
   * of all, where there are fewer than twice as many.
   */
  descriptorsReservedMax: 1024,
  /** Number assumed where the system does not say how many there are. */
  descriptorsAssumed: 4096,
} as const

/** @returns the limit of this process; null when the system does not say. */
export function descriptorsMax(): number | null {
  try {
    // Node raises the soft limit to the hard one at its start, so this does not change any more.
    const line = /^Max open files +(\d+|unlimited) /m.exec(
      readFileSync('/proc/self/limits', 'utf8'),
    )
    if (line === null) return null
    return line[1] === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(line[1])
  } catch {
    return null
  }
}

/** How many sockets clients and routers may hold, of so many descriptors. */
export function clientSocketsMax(descriptors: number): number {
  const half = Math.floor(descriptors / 2)
  return descriptors - Math.min(descriptorLimits.descriptorsReservedMax, half)
}

/** The sockets of all listeners of this process that clients and routers connect to, by source. */
export const clientSockets = new FairShare(
  clientSocketsMax(descriptorsMax() ?? descriptorLimits.descriptorsAssumed),
)

import { readFileSync } from 'node:fs'

import { FairShare } from './fair-share.ts'

/**
 * Limits for file descriptors. A process without free descriptors can open neither files nor
 * connections.
 */
export const descriptorLimits = {
  /**
   * Descriptors reserved for the log, the state, peers and other files; sockets of clients and
   * routers cannot use them. At most half of all descriptors.
   */
  descriptorsReservedMax: 1024,
  /** Assumed limit if the system does not report one. */
  descriptorsAssumed: 4096,
} as const

/** @returns the descriptor limit of this process; null when the system does not report it. */
export function fileDescriptorsMax(): number | null {
  try {
    // Node raises the soft limit to the hard limit at start, so the limit does not change
    // afterwards.
    const line = /^Max open files +(\d+|unlimited) /m.exec(
      readFileSync('/proc/self/limits', 'utf8'),
    )
    if (line === null) return null
    return line[1] === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(line[1])
  } catch {
    return null
  }
}

/** Maximum sockets for clients and routers, if the process may have this many descriptors. */
export function clientSocketsMax(descriptors: number): number {
  const half = Math.floor(descriptors / 2)
  return descriptors - Math.min(descriptorLimits.descriptorsReservedMax, half)
}

/** Sockets of clients and routers on all listeners of this process, by source. */
export const clientSocketShare = new FairShare(
  clientSocketsMax(fileDescriptorsMax() ?? descriptorLimits.descriptorsAssumed),
)

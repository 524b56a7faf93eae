import { readFileSync } from 'node:fs'

import { FairShare } from './fair-share.ts'

/**
 * Limits of file descriptors. When the process has none left, it can open no file and no
 * connection.
 */
export const descriptorLimits = {
  /**
   * Descriptors reserved from clients and routers, for the log, the state, peers and other files.
   * At most half of all descriptors.
   */
  descriptorsReservedMax: 1024,
  /** Assumed limit if the system does not report one. */
  descriptorsAssumed: 4096,
} as const

/** @returns the descriptor limit of this process; null when the system does not report it. */
export function descriptorsMax(): number | null {
  try {
    // Node raises the soft limit to the hard one at start, so it does not change afterwards.
    const line = /^Max open files +(\d+|unlimited) /m.exec(
      readFileSync('/proc/self/limits', 'utf8'),
    )
    if (line === null) return null
    return line[1] === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(line[1])
  } catch {
    return null
  }
}

/** Maximum sockets of clients and routers, given the number of descriptors. */
export function clientSocketsMax(descriptors: number): number {
  const half = Math.floor(descriptors / 2)
  return descriptors - Math.min(descriptorLimits.descriptorsReservedMax, half)
}

/** Sockets of clients and routers on all listeners of this process, by source. */
export const clientSockets = new FairShare(
  clientSocketsMax(descriptorsMax() ?? descriptorLimits.descriptorsAssumed),
)

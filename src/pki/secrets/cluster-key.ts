import { randomBytes } from 'node:crypto'

export const CLUSTER_KEY_BYTES = 32

/**
 * A version of a secret that the controllers of one cluster share: to sign session tokens with, or
 * to encrypt by.
 */
export function newClusterKey(): Uint8Array {
  return Uint8Array.from(randomBytes(CLUSTER_KEY_BYTES))
}

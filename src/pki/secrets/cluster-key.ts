import { randomBytes } from 'node:crypto'

export const CLUSTER_KEY_BYTES = 32

/**
 * Generates a new version of a secret that the controllers of a cluster share: the key that signs
 * session tokens, or an encryption key.
 */
export function newClusterKey(): Uint8Array {
  return Uint8Array.from(randomBytes(CLUSTER_KEY_BYTES))
}

import { randomBytes } from 'node:crypto'

export const CLUSTER_KEY_BYTES = 32

/**
 * Generates a new version of a secret shared by the controllers of a cluster, for signing session
 * tokens or for encryption.
 */
export function newClusterKey(): Uint8Array {
  return Uint8Array.from(randomBytes(CLUSTER_KEY_BYTES))
}

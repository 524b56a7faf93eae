import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { seededRandom } from '../../../src/lib/random.ts'

/**
 * Derives the IDs drawn by production code from a seed, because paths depend on them. This cannot
 * be undone: the process only simulates.
 */
export function seedUuids(seed: number): void {
  const chance = seededRandom(seed)
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => chance.integer(0, 15).toString(16)).join('')
  crypto.randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`
  syncBuiltinESMExports()
}

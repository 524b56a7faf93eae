import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { seededRandom } from '../../../src/lib/random.ts'

/**
 * Has the ids that production code draws follow from a seed, as ways are chosen by them. There is no way back: this process
 * simulates and does nothing else.
 */
export function seedUuids(seed: number): void {
  const chance = seededRandom(seed)
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => chance.integer(0, 15).toString(16)).join('')
  crypto.randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`
  syncBuiltinESMExports()
}

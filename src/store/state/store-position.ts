import type { StorePosition } from '../../ports/state-store.ts'
import { isNonNegativeInteger } from '../../lib/text/json-value.ts'

export const STATE_FORMAT = 2

/** Encodes a store position (a mark) as text, for a store and for a snapshot. */
export function encodeStorePosition(mark: StorePosition): string {
  const { position, timeMs, configuration, featureLevel, digest, entitiesDigest } = mark
  const { term, index } = position
  return JSON.stringify({
    format: STATE_FORMAT,
    term,
    index,
    timeMs,
    configuration,
    featureLevel,
    digest,
    entitiesDigest,
  })
}

/**
 * Decodes the text of a store position.
 * @returns null if the text is not a position; if it has another format (of a newer program, or
 * from before the first release), the number of that format.
 */
export function decodeStorePosition(text: string): StorePosition | number | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const found = value as Record<string, unknown>
  const { format, term, index, timeMs, configuration, featureLevel, digest, entitiesDigest } = found
  if (!isNonNegativeInteger(format)) return null
  if (format !== STATE_FORMAT) return format
  if (!isNonNegativeInteger(term) || !isNonNegativeInteger(index) || !isNonNegativeInteger(timeMs))
    return null
  if (typeof configuration !== 'string' || typeof digest !== 'string') return null
  if (typeof entitiesDigest !== 'string' || !isNonNegativeInteger(featureLevel)) return null
  return {
    position: { term, index },
    timeMs,
    configuration,
    featureLevel,
    digest,
    entitiesDigest,
  }
}

import { fieldProblem } from '../lib/problems.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { extractHexDigits } from '../lib/text/hex-digits.ts'
import { isVersionRange } from '../lib/text/version-range.ts'

/**
 * Normalizes a field of a posture check.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function normalizePostureField(name: string, value: Json): Json {
  switch (name) {
    case 'operatingSystems':
      return operatingSystems(value as readonly JsonObject[])
    case 'macAddresses':
      return (value as readonly string[]).map(macAddress)
    case 'processes':
      return (value as readonly JsonObject[]).map((one) => ({
        hashes: [],
        signerFingerprints: [],
        ...one,
      }))
    case 'timeoutSeconds':
      return Number(value) > 0 ? value : -1
    default:
      return value
  }
}

/** One entry per operating system; a later entry replaces earlier ones of the same type. */
function operatingSystems(items: readonly JsonObject[]): Json {
  for (const { versions } of items) {
    for (const version of versions as readonly string[]) {
      if (isVersionRange(version)) continue
      const reason = 'versions must be semantic version ranges, like ">=10.0.0 <11.0.0"'
      throw fieldProblem('operatingSystems', reason, version)
    }
  }
  return [...new Map(items.map((item) => [item['type'], item])).values()]
}

/** Normalizes an address of 48 or 64 bits, in any common notation. */
function macAddress(text: string): string {
  const hex = extractHexDigits(text)
  if (hex.length === 12 || hex.length === 16) return hex
  throw fieldProblem('macAddresses', 'must be hardware addresses, like 00:1b:44:11:3a:b7', text)
}

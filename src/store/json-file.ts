import { canonicalJson } from '../lib/text/canonical-json.ts'
import { isJsonObject } from '../lib/text/json-value.ts'
import { crc32 } from 'node:zlib'

/**
 * Parses the JSON object in a small file of the data folder; null when the file does not contain an
 * object.
 */
export function parseJsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** CRC-32, in hex, of a JSON object that does not contain the checksum itself. */
export function jsonChecksum(members: object): string {
  return crc32(canonicalJson(members)).toString(16).padStart(8, '0')
}

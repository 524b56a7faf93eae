import { canonicalJson } from '../lib/text/canonical-json.ts'
import { isJsonObject } from '../lib/text/json-value.ts'
import { crc32 } from 'node:zlib'

/** The JSON object in a small file of the data folder; null when it holds none. */
export function parseJsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** Checksum of the other members of such a file, in hex. */
export function jsonChecksum(members: object): string {
  return crc32(canonicalJson(members)).toString(16).padStart(8, '0')
}

import { canonicalJson } from '../lib/text/canonical-json.ts'
import { isJsonObject } from '../lib/text/json-value.ts'
import { crc32 } from 'node:zlib'

/** The object that a small file beside the log holds; null when it holds none. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** Checksum that such a file has of its other members, in hex. */
export function checkOf(members: object): string {
  return crc32(canonicalJson(members)).toString(16).padStart(8, '0')
}

import { createHash } from 'node:crypto'
import type { Entry } from '../../../src/raft/types.ts'

/** `count` entries from `index`, with bodies that differ by index and term. */
export function someEntries(index: number, count: number, term = 1, bodyBytes = 40): Entry[] {
  return Array.from({ length: count }, (_, offset) => entry(index + offset, term, bodyBytes))
}

export function entry(index: number, term = 1, bodyBytes = 40): Entry {
  const data = new Uint8Array(bodyBytes)
  for (let at = 0; at < bodyBytes; at += 1) data[at] = (index * 31 + term * 7 + at) & 255
  return { index, term, timeMs: 1_700_000_000_000 + index, type: 'command', data }
}

/**
 * One short text per entry, equal only for equal entries: comparing bodies byte by byte is slow and
 * hard to read.
 */
export function summary(entries: readonly Entry[]): string[] {
  return entries.map(({ index, term, timeMs, type, data }) => {
    const digest = createHash('sha256').update(data).digest('base64url').slice(0, 12)
    return `${index}@${term} ${type} ${timeMs} ${data.length}:${digest}`
  })
}

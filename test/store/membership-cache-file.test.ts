import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  readMembershipCacheFile,
  MEMBERSHIP_CACHE_FILE_NAME,
  MembershipCacheFile,
  writeMembershipCacheFile,
} from '../../src/store/folder/membership-cache-file.ts'

let dir = ''
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'flotilla-roster-'))))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const roster = {
  configuration: Uint8Array.of(1, 2, 250),
  index: 77,
  claims: [Uint8Array.of(9), Uint8Array.of(8, 8)],
  marks: [],
}
const path = (): string => join(dir, MEMBERSHIP_CACHE_FILE_NAME)

test('the membership cache file returns the record that was written, and of several records the last one', () => {
  expect(readMembershipCacheFile(dir)).toBeNull()
  writeMembershipCacheFile(dir, roster)
  expect(readMembershipCacheFile(dir)).toEqual(roster)
  writeMembershipCacheFile(dir, { ...roster, index: 78, claims: [] })
  expect(readMembershipCacheFile(dir)).toEqual({ ...roster, index: 78, claims: [] })
})

test('a membership cache file that is damaged, truncated, oversized or in another format is reported differently from a missing file', () => {
  writeMembershipCacheFile(dir, roster)
  const whole = readFileSync(path(), 'utf8')
  const damaged = [
    whole.replace('"index":77', '"index":78'),
    whole.slice(0, 20),
    '[]',
    ' '.repeat(1024 * 1024 + 1),
  ]
  for (const text of damaged) {
    writeFileSync(path(), text)
    expect(() => readMembershipCacheFile(dir)).toThrow(expect.objectContaining({ code: 'CORRUPT' }))
  }
  writeFileSync(path(), whole.replace('"format":1', '"format":2'))
  expect(() => readMembershipCacheFile(dir)).toThrow(
    expect.objectContaining({ code: 'NEWER_FORMAT' }),
  )
})

const mark = {
  id: 'b',
  generation: 1,
  storeId: new Uint8Array(16).fill(7),
  boot: 2n ** 63n,
  startedAtMs: 1_700_000_000_000n,
  heard: { term: 3, index: 9, applied: 8 },
  answered: { term: 3, index: 7, applied: 0 },
  past: { term: 2, index: 5, applied: 5 },
}

test('the membership cache file returns the disk records of members as they were written', () => {
  writeMembershipCacheFile(dir, { ...roster, marks: [mark] })
  expect(readMembershipCacheFile(dir)).toEqual({ ...roster, marks: [mark] })
})

test('after many quick membership changes, the last one is in the membership cache file', async () => {
  const failures: unknown[] = []
  const writer = new MembershipCacheFile(dir, (error) => failures.push(error))
  for (let index = 1; index <= 50; index += 1) writer.write({ ...roster, index, marks: [mark] })
  await writer.settled()
  expect(readMembershipCacheFile(dir)).toEqual({ ...roster, index: 50, marks: [mark] })
  const lost = new MembershipCacheFile(join(dir, 'gone'), (error) => failures.push(error))
  lost.write(roster)
  await lost.settled()
  expect(failures).toHaveLength(1)
})

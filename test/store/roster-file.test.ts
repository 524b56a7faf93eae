import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { readRosterFile, ROSTER_NAME, writeRosterFile } from '../../src/store/roster-file.ts'

let dir = ''
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'flotilla-roster-'))))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const roster = {
  configuration: Uint8Array.of(1, 2, 250),
  index: 77,
  claims: [Uint8Array.of(9), Uint8Array.of(8, 8)],
}
const path = (): string => join(dir, ROSTER_NAME)

test('a roster comes back as it was written, and the last one replaces the others', () => {
  expect(readRosterFile(dir)).toBeNull()
  writeRosterFile(dir, roster)
  expect(readRosterFile(dir)).toEqual(roster)
  writeRosterFile(dir, { ...roster, index: 78, claims: [] })
  expect(readRosterFile(dir)).toEqual({ ...roster, index: 78, claims: [] })
})

test('a changed byte, a cut file, another format and too much of it are told apart from no roster', () => {
  writeRosterFile(dir, roster)
  const whole = readFileSync(path(), 'utf8')
  const damaged = [
    whole.replace('"index":77', '"index":78'),
    whole.slice(0, 20),
    '[]',
    ' '.repeat(1024 * 1024 + 1),
  ]
  for (const text of damaged) {
    writeFileSync(path(), text)
    expect(() => readRosterFile(dir)).toThrow(expect.objectContaining({ code: 'CORRUPT' }))
  }
  writeFileSync(path(), whole.replace('"format":1', '"format":2'))
  expect(() => readRosterFile(dir)).toThrow(expect.objectContaining({ code: 'NEWER_FORMAT' }))
})

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { setAside } from '../../src/controller/start/set-aside.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-aside-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function fill(content: string): string {
  const data = join(folder, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'IDENTITY'), content)
  return data
}

test('a data folder that is set aside is moved completely to a name that contains the time', () => {
  const aside = setAside(fill('one'), Date.UTC(2026, 10, 20, 17, 5, 9, 77))
  expect(aside).toBe(join(folder, 'data.set-aside-20261120T170509.077Z'))
  expect(readFileSync(join(aside, 'IDENTITY'), 'utf8')).toBe('one')
  expect(readdirSync(folder)).toEqual(['data.set-aside-20261120T170509.077Z'])
})

test('only the two newest data folders that were set aside are kept, even if they were created within one second, and no other files are removed', () => {
  mkdirSync(join(folder, 'data.backup'))
  const atMs = Date.UTC(2026, 0, 1)
  for (const content of ['one', 'two', 'three', 'four']) setAside(fill(content), atMs)
  const kept = readdirSync(folder).filter((name) => name !== 'data.backup')
  expect(kept.map((name) => readFileSync(join(folder, name, 'IDENTITY'), 'utf8')).sort()).toEqual([
    'four',
    'three',
  ])
  expect(readdirSync(folder)).toContain('data.backup')
})

test('files with a similar name, such as data.set-aside-old, are neither removed nor counted', () => {
  const others = [
    'data.set-aside-old',
    'data.set-aside-20260101T000000.000Z.tar',
    'data.set-aside-9',
  ]
  for (const name of others) mkdirSync(join(folder, name))
  const atMs = Date.UTC(2026, 0, 1)
  for (const content of ['one', 'two', 'three']) setAside(fill(content), atMs)
  const kept = readdirSync(folder).filter((name) => !others.includes(name))
  expect(kept.map((name) => readFileSync(join(folder, name, 'IDENTITY'), 'utf8')).sort()).toEqual([
    'three',
    'two',
  ])
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(others))
})

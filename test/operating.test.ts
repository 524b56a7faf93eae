import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  grantablePermissions,
  permissionReaches,
  reachOfPermission,
} from '../src/lib/permissions.ts'
import { withoutTest } from './support/titles.ts'

// What docs/operating.md says of the pains of others rests on tests that are there.

const text = readFileSync(join(import.meta.dirname, '../docs/operating.md'), 'utf8')
const rows = [...text.matchAll(/^\| (P\d+) \|([^|]+)\|([^|]+)\|([^|]+)\|$/gm)]

test('each of the twenty-five pains has its row: what is done, and the test that shows it', () => {
  const names = Array.from({ length: 25 }, (_, at) => `P${at + 1}`)
  expect(rows.map(([, name]) => name)).toEqual(names)
  const proofs = rows.flatMap(([, , , , shown = '']) => {
    const named = [...shown.matchAll(/`([^`]+)`/g)].map(([, proof = '']) => proof)
    return named.length === 0 ? [shown] : named
  })
  expect(withoutTest(proofs), 'renamed or gone: name the test that shows it now').toEqual([])
})

test('each permission that reaches further than its name stands in the row of its reach, and no other does', () => {
  const reaching = permissionReaches
    .filter((reach) => reach !== 'records')
    .map((reach) => grantablePermissions.filter((one) => reachOfPermission(one) === reach).sort())
  const [, table = ''] = /\| permissions \|[^\n]+\n\|---\|---\|\n((?:\|[^\n]+\n)+)/.exec(text) ?? []
  const named = [...table.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name).sort(),
  )
  expect(named).toEqual(reaching)
})

test('each line on what a stolen router can and cannot do names a test that shows it', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/internals/security.md'), 'utf8')
  const [, table = ''] = /\| it \| shown by \|\n\|---\|---\|\n((?:\|[^\n]+\n)+)/.exec(page) ?? []
  const lines = [...table.matchAll(/^\| (can[^|]+) \| ([^|]+) \|$/gm)]
  expect(lines.length).toBeGreaterThan(10)
  const unshown = lines.filter(([, , shown]) => shown === '–').map(([, line]) => line)
  expect(unshown, 'whoever carries traffic sees it').toEqual([
    'can read what passes it unencrypted, and end, delay or drop it',
  ])
  const proofs = lines.flatMap(([, , shown = '']) => [...shown.matchAll(/`([^`]+)`/g)])
  expect(withoutTest(proofs.map(([, proof = '']) => proof))).toEqual([])
})

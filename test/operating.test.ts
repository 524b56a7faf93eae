import { expect, test } from 'vitest'
import {
  grantablePermissions,
  permissionEffectScopes,
  permissionEffectScope,
} from '../src/lib/permissions.ts'
import { pageNames, pageText } from './support/pages.ts'
import { withoutTest } from './support/titles.ts'

// Goal: each promise in docs/internals/proofs.md names an existing test, and docs/operate lists its
// pages and the permissions that the code defines.

const proofsPage = pageText('internals/proofs.md')
const rows = [...proofsPage.matchAll(/^\| (P\d+) \|([^|]+)\|([^|]+)\|([^|]+)\|$/gm)]

test('each of the twenty-five failure modes in the docs references the test that shows the behavior of Flotilla', () => {
  const names = Array.from({ length: 25 }, (_, at) => `P${at + 1}`)
  expect(rows.map(([, name]) => name)).toEqual(names)
  const proofs = rows.flatMap(([, , , , shown = '']) => {
    const named = [...shown.matchAll(/`([^`]+)`/g)].map(([, proof = '']) => proof)
    return named.length === 0 ? [shown] : named
  })
  expect(
    withoutTest(proofs),
    'the test was renamed or removed: name the test that proves the row now',
  ).toEqual([])
})

test('each page in docs/operate begins with its purpose and is listed in the index', () => {
  const index = pageText('operate/README.md')
  const pages = pageNames('operate').filter((name) => name !== 'operate/README.md')
  const unlisted = pages.filter((name) => !index.includes(`](${name.slice('operate/'.length)}`))
  expect(unlisted).toEqual([])
  const withoutUse = pages.filter((name) => !/^# .*\n\nUse this page /.test(pageText(name)))
  expect(withoutUse).toEqual([])
})

test('permissions.md has a row for each effect beyond records, with exactly the permissions that have this effect', () => {
  const reaching = permissionEffectScopes
    .filter((reach) => reach !== 'records')
    .map((reach) =>
      grantablePermissions.filter((one) => permissionEffectScope(one) === reach).sort(),
    )
  const [, table = ''] =
    /\| permissions \|[^\n]+\n\|---\|---\|\n((?:\|[^\n]+\n)+)/.exec(
      pageText('operate/permissions.md'),
    ) ?? []
  const named = [...table.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name).sort(),
  )
  expect(named).toEqual(reaching)
})

test('each row about a stolen router in security.md references an existing test, except the row about traffic that the router carries', () => {
  const page = pageText('internals/security.md')
  const [, table = ''] =
    /\| the stolen router \| shown by \|\n\|---\|---\|\n((?:\|[^\n]+\n)+)/.exec(page) ?? []
  const lines = [...table.matchAll(/^\| (can[^|]+) \| ([^|]+) \|$/gm)]
  expect(lines.length).toBeGreaterThan(10)
  const unshown = lines.filter(([, , shown]) => shown === '–').map(([, line]) => line)
  expect(unshown, 'a router sees the traffic that it carries').toEqual([
    'can read unencrypted traffic that passes through it, and can end, delay or drop any traffic that passes through it',
  ])
  const proofs = lines.flatMap(([, , shown = '']) => [...shown.matchAll(/`([^`]+)`/g)])
  expect(withoutTest(proofs.map(([, proof = '']) => proof))).toEqual([])
})

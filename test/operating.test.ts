import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
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

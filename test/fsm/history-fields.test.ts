import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { historyFields } from '../../src/entities/history-kinds.ts'

const path = join(import.meta.dirname, 'history-fields.json')

// Controllers of two versions store the same text for an entry only if both have the same list. So
// a field of a released level stays in its list, and a new field has a `since`.
test('the audit log retains the values of exactly those fields that the recorded list contains', () => {
  const lists = Object.fromEntries(historyFields)
  const text = `${JSON.stringify(lists, null, 2)}\n`
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, text)
  expect(lists, 'FLOTILLA_RECORD=1 records a new field').toEqual(
    JSON.parse(readFileSync(path, 'utf8')),
  )
})

test('the audit log retains no field whose name resembles that of a secret, except for fields that were reviewed', () => {
  const kept = [...historyFields].flatMap(([kind, fields]) =>
    fields.kept.map((field) => `${kind}.${field}`),
  )
  const suspicious = kept.filter((name) => /secret|password|token|jwt$|hash|private/i.test(name))
  expect(suspicious).toEqual([
    'externalJwtSigner.enrollToTokenEnabled',
    'externalJwtSigner.targetToken',
  ])
})

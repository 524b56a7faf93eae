import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { entities } from '../../src/entities/registry.ts'
import { canonicalJson, type Json } from '../../src/lib/text/canonical-json.ts'

// A stored record omits the fields that have their zero value. If that value changes between two
// releases, the releases store, and digest, different bytes for the same record. Each zero value is
// recorded once; FLOTILLA_RECORD=1 adds new fields.

const path = join(import.meta.dirname, 'zeros.json')

function zeros(): Record<string, Json> {
  const found: Record<string, Json> = {}
  for (const { name, fields } of entities) {
    for (const [field, { zero }] of Object.entries(fields)) found[`${name}.${field}`] = zero
  }
  return found
}

function recorded(): Record<string, Json> {
  if (!existsSync(path)) return {}
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, Json>
}

test('the zero value of each stored field equals the recorded zero value', () => {
  const now = zeros()
  const known = recorded()
  const isRecording = process.env['FLOTILLA_RECORD'] === '1'
  if (isRecording) writeFileSync(path, `${JSON.stringify({ ...now, ...known }, null, 2)}\n`)
  const changed = Object.entries(known).filter(
    ([name, zero]) => name in now && canonicalJson(now[name] ?? null) !== canonicalJson(zero),
  )
  expect(
    changed,
    'two releases would store different bytes (ADR 14): add a separate field, with `since`',
  ).toEqual([])
  const missing = Object.keys(now).filter((name) => !(name in known))
  expect(isRecording ? [] : missing, 'record new fields with FLOTILLA_RECORD=1').toEqual([])
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { renderControllerConfigReference } from '../../../src/config/controller/config-reference.ts'

test('docs/reference/configuration.md matches the table of options (FLOTILLA_RECORD=1 writes it)', () => {
  const path = join(import.meta.dirname, '../../../docs/reference/configuration.md')
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, renderControllerConfigReference())
  expect(readFileSync(path, 'utf8')).toBe(renderControllerConfigReference())
})

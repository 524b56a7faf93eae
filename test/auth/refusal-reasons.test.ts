import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { refusalReasons } from '../../src/lib/refusal-reason.ts'

test('docs/operate/audit-log.md explains every reason for which a log-in is refused', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operate/audit-log.md'), 'utf8')
  const rows = Object.entries(refusalReasons).map(([code, text]) => `| \`${code}\` | ${text} |`)
  expect(page.split('\n')).toEqual(expect.arrayContaining(rows))
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

const path = join(import.meta.dirname, '../../docs/reference/metrics.md')

/**
 * Checks that the table in a section of docs/reference/metrics.md has exactly the rows of the
 * `flotilla_` metrics in the text. FLOTILLA_RECORD=1 records the table.
 * @param text metrics in the Prometheus text format.
 */
export function expectOnMetricsPage(section: string, text: string): void {
  const rows = [...text.matchAll(/^# HELP (flotilla_\S+) (.*)\n# TYPE \S+ (\S+)$/gm)].map(
    ([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`,
  )
  const table = `| metric | type | meaning |\n|---|---|---|\n${rows.sort().join('\n')}\n`
  const page = readFileSync(path, 'utf8')
  const [before = '', own = ''] = page.split(`\n## ${section}\n`)
  const [, after = ''] = /\n(## [^]*)$/.exec(own) ?? []
  const [opening = ''] = own.split(/^\| metric /m)
  const wanted = `${before}\n## ${section}\n${opening}${table}${after === '' ? '' : `\n${after}`}`
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, wanted)
  expect(readFileSync(path, 'utf8')).toBe(wanted)
}

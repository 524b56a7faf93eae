import { expect, test } from 'vitest'

import { renderConfigTables } from '../../../src/config/engine/config-tables.ts'
import { fields, tableOf } from './support.ts'

const topRows = (text: string): string[] => text.split('\n## ')[0]?.split('\n').slice(2) ?? []

test('a generated page has a row for each configuration key with its type, default and purpose, and whether it has no effect', () => {
  const text = renderConfigTables(tableOf(null))
  expect(topRows(text)).toEqual([
    '| key | expected | default | purpose |',
    '|---|---|---|---|',
    '| `name` | a text that is not empty | *required* | Its name. |',
    '| `size` | an integer from 1 to 9 | `3` | Its \\<size>, a\\|b. |',
    '| `mode` (or `way`) | one of fast, slow | `fast` | Its mode. |',
    '| `old` | a text that is not empty | *none* | Older. Deprecated: use mode. |',
    '| `idle` | a duration such as 5s, 1m or 24h, from 0s to 8760h | `1m` | Idle time. No effect in this version. |',
    '| `tags` | a list of texts | `a, b` | Tags. |',
    '| `legacy` | anything | | no effect: it is of another program |',
    '',
  ])
})

test('a generated page has a heading for each section, each list and each kind of options of the configuration, and shows the purpose of sections and lists', () => {
  const text = renderConfigTables(tableOf(null))
  expect(text.split('\n').filter((line) => line.startsWith('## '))).toEqual([
    '## At the top',
    '## home',
    '## timing',
    '## extra',
    '## edge',
    '## doors (a list of 1 to 2)',
    '## doors[].options of `kind: in`',
    '## doors[].options of `kind: out`',
    '## lamps (a list of up to 3)',
    '## lamps[].shade',
    '## rooms (up to 2 sections by name)',
  ])
  expect(text).toContain('## home\n\nHome. Required.\n\n| key |')
  expect(text).toContain('## edge\n\nEdge. Deprecated: there is none.\n\n## doors')
  expect(text).toContain('## lamps (a list of up to 3)\n\nLamps. No effect in this version.\n')
  expect(text).toContain(
    '| `lamps[].shade.colour` | a text that is not empty | `red` | Colour. No effect',
  )
  expect(text).toContain('| `rooms.<name>.area` |')
})

test('if environment variables can override keys, a generated page shows the variable and the scope of each key', () => {
  const [head, , name, size] = topRows(renderConfigTables({ fields, overridePrefix: 'APP_' }))
  expect([head, name, size]).toEqual([
    '| key | expected | default | scope | change | purpose | variable |',
    '| `name` | a text that is not empty | *required* | node | restart | Its name. | `APP_NAME` |',
    '| `size` | an integer from 1 to 9 | `3` | cluster | restart | Its \\<size>, a\\|b. | `APP_SIZE` |',
  ])
})

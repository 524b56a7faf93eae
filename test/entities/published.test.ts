import { expect, test } from 'vitest'
import { defineEntity } from '../../src/entities/define.ts'
import { computed, text } from '../../src/entities/fields.ts'
import { published, withheld } from '../../src/entities/published.ts'

const about = { name: 'mfa', plural: 'mfas', operations: {}, symbols: [] } as const

test('a stored field of a published kind does not compile without stating whether events show it', () => {
  const shownId = computed({ from: 'field', field: 'id' }, { type: 'string' })
  const secret = withheld({ secret: text() })
  const fields = published({ name: text(), ...secret, shownId })
  const kind = defineEntity({ ...about, isPublished: true, fields })
  const decided = Object.entries(kind.fields).map(([name, field]) => [name, field.published])
  expect(Object.fromEntries(decided)).toEqual({
    name: 'shown',
    secret: 'withheld',
    shownId: null,
    tags: 'shown',
  })
  const open = { ...fields, other: text() }
  // @ts-expect-error: nothing is said of the field `other`.
  expect(defineEntity({ ...about, isPublished: true, fields: open }).isPublished).toBe(true)
})

test('a kind with a table declares whether it has events, or does not compile', () => {
  const fields = { name: text() }
  expect(defineEntity({ ...about, isPublished: false, fields }).isPublished).toBe(false)
  // @ts-expect-error: nothing is said of the kind.
  expect(defineEntity({ ...about, fields }).isPublished).toBe(false)
})

test('a view of another table, and rows that no table holds, are not published', () => {
  const fields = { name: text() }
  expect(defineEntity({ ...about, table: 'identity', fields }).isPublished).toBe(false)
  expect(defineEntity({ ...about, name: 'row', fields }).isPublished).toBe(false)
})

import { expect, test } from 'vitest'
import { defineEntity } from '../../src/entities/define-entity.ts'
import { computedField, textField } from '../../src/entities/fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../../src/entities/event-visibility.ts'

const about = { name: 'mfa', plural: 'mfas', operations: {}, symbols: [] } as const

test('a published record kind causes a compile error if a stored field does not declare whether events show it', () => {
  const shownId = computedField({ from: 'field', field: 'id' }, { type: 'string' })
  const secret = markHiddenFromEvents({ secret: textField() })
  const fields = markShownInEvents({ name: textField(), ...secret, shownId })
  const kind = defineEntity({ ...about, isPublished: true, fields })
  const decided = Object.entries(kind.fields).map(([name, field]) => [name, field.published])
  expect(Object.fromEntries(decided)).toEqual({
    name: 'shown',
    secret: 'withheld',
    shownId: null,
    tags: 'shown',
  })
  const open = { ...fields, other: textField() }
  // @ts-expect-error: the field `other` is neither published nor withheld.
  expect(defineEntity({ ...about, isPublished: true, fields: open }).isPublished).toBe(true)
})

test('a record kind with a table causes a compile error if it does not declare whether it has events', () => {
  const fields = { name: textField() }
  expect(defineEntity({ ...about, isPublished: false, fields }).isPublished).toBe(false)
  // @ts-expect-error: the kind does not declare whether it is published.
  expect(defineEntity({ ...about, fields }).isPublished).toBe(false)
})

test('a record kind without separate rows, such as a view of another table, has no events', () => {
  const fields = { name: textField() }
  expect(defineEntity({ ...about, table: 'identity', fields }).isPublished).toBe(false)
  expect(defineEntity({ ...about, name: 'row', fields }).isPublished).toBe(false)
})

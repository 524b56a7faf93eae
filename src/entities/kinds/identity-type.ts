import { defineEntity } from '../define.ts'
import { nameText } from '../fields.ts'
import { published } from '../published.ts'

/** Identity types; seeded and read-only. */
export const identityType = defineEntity({
  name: 'identityType',
  plural: 'identityTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: published({ name: nameText() }),
  symbols: ['name'],
})

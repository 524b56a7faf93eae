import { defineEntity } from '../define.ts'
import { nameText } from '../fields.ts'

/** Identity types; seeded and read-only. */
export const identityType = defineEntity({
  name: 'identityType',
  plural: 'identityTypes',
  operations: { management: { list: 'session', detail: 'session' } },
  fields: { name: nameText() },
  symbols: ['name'],
})

import { defineEntity } from '../define.ts'
import { nameText } from '../fields.ts'
import { shownInEvents } from '../published.ts'

/** Identity types; created with the cluster and read-only. */
export const identityType = defineEntity({
  name: 'identityType',
  plural: 'identityTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: shownInEvents({ name: nameText() }),
  symbols: ['name'],
})

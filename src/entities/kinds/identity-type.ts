import { defineEntity } from '../define-entity.ts'
import { nameField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'

/**
 * Types of identities. The records are created with the cluster, or when its feature level is
 * raised, and are read-only.
 */
export const identityType = defineEntity({
  name: 'identityType',
  plural: 'identityTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: markShownInEvents({ name: nameField() }),
  symbols: ['name'],
})

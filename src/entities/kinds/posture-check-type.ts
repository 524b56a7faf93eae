import { defineEntity } from '../define-entity.ts'
import { nameField, objectListField, text } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { operatingSystemSchema } from '../parts/posture-check-subjects.ts'

/**
 * Posture check types that depend on operating systems; created with the cluster and read-only. The
 * type `MFA` has no entry.
 */
export const postureCheckType = defineEntity({
  name: 'postureCheckType',
  plural: 'postureCheckTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: markShownInEvents({
    name: nameField(),
    version: text(),
    operatingSystems: objectListField(operatingSystemSchema, { itemsMax: 64 }),
  }),
  symbols: ['name'],
})

import { defineEntity } from '../define-entity.ts'
import { nameField, objectListField, textField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { operatingSystemSchema } from '../parts/posture-check-subjects.ts'

/**
 * For each posture check type, the operating systems that support it. The records are created with
 * the cluster and are read-only. The type `MFA` has no entry.
 */
export const postureCheckType = defineEntity({
  name: 'postureCheckType',
  plural: 'postureCheckTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: markShownInEvents({
    name: nameField(),
    version: textField(),
    operatingSystems: objectListField(operatingSystemSchema, { itemsMax: 64 }),
  }),
  symbols: ['name'],
})

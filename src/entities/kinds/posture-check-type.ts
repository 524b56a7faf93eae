import { defineEntity } from '../define.ts'
import { nameText, objects, text } from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { operatingSystem } from '../parts/posture-check-subjects.ts'

/**
 * Posture check types that depend on operating systems; created with the cluster and read-only. The
 * type `MFA` has no entry.
 */
export const postureCheckType = defineEntity({
  name: 'postureCheckType',
  plural: 'postureCheckTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: shownInEvents({
    name: nameText(),
    version: text(),
    operatingSystems: objects(operatingSystem, { itemsMax: 64 }),
  }),
  symbols: ['name'],
})

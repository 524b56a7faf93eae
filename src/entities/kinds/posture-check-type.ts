import { defineEntity } from '../define.ts'
import { nameText, objects, text } from '../fields.ts'
import { published } from '../published.ts'
import { operatingSystem } from '../parts/posture-check-subjects.ts'

/**
 * Seeded and read only: the types of posture checks that speak of operating systems. `MFA` is a
 * type without an entry.
 */
export const postureCheckType = defineEntity({
  name: 'postureCheckType',
  plural: 'postureCheckTypes',
  isPublished: true,
  operations: { management: { list: 'session', detail: 'session' } },
  fields: published({
    name: nameText(),
    version: text(),
    operatingSystems: objects(operatingSystem, { itemsMax: 64 }),
  }),
  symbols: ['name'],
})

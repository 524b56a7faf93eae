import { defineEntity, type EntityOf } from '../define-entity.ts'
import { integerField, timestampField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Time and log index of the last change of the services that an active identity sees on the client
 * API. A mark belongs to one identity, or to all identities with the same service policies (a
 * class). Ids are `i:<identity id>` and `c:<key of the class>`. Not served by any API.
 */
export const accessMark = defineEntity({
  name: 'accessMark',
  plural: 'accessMarks',
  isPublished: false,
  operations: {},
  fields: {
    /** Log time of the change; null: the mark records no change, and only `index` matters. */
    movedAt: timestampField(hidden),
    /**
     * In the mark of a class: log index of the entry that set the mark. In the mark of an identity:
     * log index up to which the mark includes the marks of its class; only later class marks count.
     */
    index: integerField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessMark = EntityOf<typeof accessMark>

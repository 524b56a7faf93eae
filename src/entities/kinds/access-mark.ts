import { defineEntity, type EntityOf } from '../define-entity.ts'
import { integer, timestampField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Time and log index of the last change in what an active identity sees on the client API. A mark
 * belongs to one identity, or to all identities with the same service policies (a class). Ids are
 * `i:<identity id>` and `c:<key of the class>`. Not served by any API.
 */
export const accessMark = defineEntity({
  name: 'accessMark',
  plural: 'accessMarks',
  isPublished: false,
  operations: {},
  fields: {
    /** Log time; null if the identity's view did not change individually. */
    movedAt: timestampField(hidden),
    /**
     * In a class mark: log index of the entry that set it. In an identity's mark: index of the last
     * entry whose class mark is already included; only later class marks count.
     */
    index: integer(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessMark = EntityOf<typeof accessMark>

import { defineEntity, type EntityOf } from '../define.ts'
import { integer, timestamp } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Time and log index of the last change to an active identity's client view: its own mark, or the
 * mark of all identities with the same service policies. Ids are `i:<identity id>` and `c:<key of
 * the class>`. Not served by any API.
 */
export const accessMark = defineEntity({
  name: 'accessMark',
  plural: 'accessMarks',
  isPublished: false,
  operations: {},
  fields: {
    /** Log time; null: not changed individually. */
    movedAt: timestamp(hidden),
    /**
     * Log index of the entry that set a class mark. In an identity's mark: the last entry whose
     * class mark is already included; only later class marks count.
     */
    index: integer(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessMark = EntityOf<typeof accessMark>

import { defineEntity, type EntityOf } from '../define.ts'
import { integer, timestamp } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * When the client view of an active identity moved: its own mark, or that of all whom the same
 * service policies mean. Ids are `i:<identity id>` and `c:<key of the class>`; served by no API.
 */
export const accessMark = defineEntity({
  name: 'accessMark',
  plural: 'accessMarks',
  isPublished: false,
  operations: {},
  fields: {
    /** Log time; null: it has not moved by itself. */
    movedAt: timestamp(hidden),
    /**
     * Entry that marked a class. Of an identity: marks of its class count from after
     * this entry.
     */
    index: integer(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessMark = EntityOf<typeof accessMark>

import { defineEntity, type EntityOf } from '../define.ts'
import { object, text } from '../fields.ts'

/** Id of the only record of the kind. */
export const accessEndId = 'last'

/** An end of access that has come, or that is near. */
export interface AccessEndNotice {
  readonly [name: string]: string | number
  readonly type: 'ended' | 'approaching'
  readonly kind: 'servicePolicy' | 'identity'
  readonly id: string
  readonly name: string
  /** Role attribute of an identity; '' for a policy. */
  readonly attribute: string
  /** UTC ms. */
  readonly expiresAt: number
}

const hidden = { settable: 'never', shown: 'never' } as const

/** Access that ended with the last such entry, and ends that came near; not served by any API. */
export const accessEnd = defineEntity({
  name: 'accessEnd',
  plural: 'accessEnds',
  since: 3,
  isPublished: false,
  operations: {},
  fields: {
    /** Position in the order of ends up to which they are announced a day before. */
    announcedDay: text(hidden),
    /** The same, an hour before. */
    announcedHour: text(hidden),
    notices: object<readonly AccessEndNotice[]>({ type: 'array' }, [], hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessEnd = EntityOf<typeof accessEnd>

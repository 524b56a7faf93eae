import { defineEntity, type EntityOf } from '../define-entity.ts'
import { objectField, text } from '../fields.ts'

/** Id of the only record of the kind. */
export const accessEndRecordId = 'last'

/** Notice that access has ended or will end soon. */
export interface AccessExpiryNotice {
  readonly [name: string]: string | number
  readonly type: 'ended' | 'approaching'
  readonly kind: 'servicePolicy' | 'identity'
  readonly id: string
  readonly name: string
  /** Role attribute of an identity that ends; '' for a policy. */
  readonly attribute: string
  /** UTC ms. */
  readonly expiresAt: number
}

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Notices from the last log entry that ended access or announced that access will end; not served
 * by any API.
 */
export const accessEnd = defineEntity({
  name: 'accessEnd',
  plural: 'accessEnds',
  since: 3,
  isPublished: false,
  operations: {},
  fields: {
    /**
     * All times at which access ends, up to this position in their order, have been announced a day
     * before.
     */
    announcedDay: text(hidden),
    /**
     * All times at which access ends, up to this position in their order, have been announced an
     * hour before.
     */
    announcedHour: text(hidden),
    notices: objectField<readonly AccessExpiryNotice[]>({ type: 'array' }, [], hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessEnd = EntityOf<typeof accessEnd>

import { defineEntity, type EntityOf } from '../define-entity.ts'
import { objectField, textField } from '../fields.ts'

/** Id of the only record of the kind. */
export const accessEndRecordId = 'last'

/** Notice that access has ended or will end soon. */
export interface AccessExpiryNotice {
  readonly [name: string]: string | number
  readonly type: 'ended' | 'approaching'
  readonly kind: 'servicePolicy' | 'identity'
  readonly id: string
  readonly name: string
  /**
   * The role attribute that expires, if the notice is about an identity; '' if it is about a
   * policy.
   */
  readonly attribute: string
  /** Time at which the access expires, UTC ms. */
  readonly expiresAt: number
}

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Contains the notices of the last log entry that wrote this record: about access that has ended,
 * and about access that ends soon. Not served by any API.
 */
export const accessEnd = defineEntity({
  name: 'accessEnd',
  plural: 'accessEnds',
  since: 3,
  isPublished: false,
  operations: {},
  fields: {
    /**
     * Position in the order of expiries: all expiries up to it have been announced one day in
     * advance, or need no such announcement.
     */
    announcedDay: textField(hidden),
    /**
     * Position in the order of expiries: all expiries up to it have been announced one hour in
     * advance, or need no such announcement.
     */
    announcedHour: textField(hidden),
    notices: objectField<readonly AccessExpiryNotice[]>({ type: 'array' }, [], hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AccessEnd = EntityOf<typeof accessEnd>

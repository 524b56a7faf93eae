import { attributes, fieldLimits, map, timestamp } from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { expirySchema } from './expiry.ts'

/**
 * Ends of role attributes in a body, by attribute. Null removes an end. A PATCH keeps the ends that
 * it does not name, and a PUT those that have passed.
 */
export const roleEndsSchema = {
  type: 'object',
  maxProperties: fieldLimits.attributesMax,
  additionalProperties: { anyOf: [expirySchema, { type: 'null' }] },
} as const

/** Role attributes of an identity, each of which may end at a time. */
export const roleFields = shownInEvents({
  /** Only attributes in force: log time removes one at its end. */
  roleAttributes: attributes(),
  /**
   * RFC 3339 in UTC, by attribute. An attribute that has ended stays here, so that a client that
   * still lists it in `roleAttributes` does not give it again. A PUT that omits the field keeps it.
   */
  roleAttributesExpireAt: {
    ...map<string | null>({
      settable: 'proposer',
      shown: 'whenSet',
      since: 3,
      values: { type: 'string', format: 'date-time' },
    }),
    mergedOnto: {},
  },
  /** The next end of an attribute in force; null: none of them ends. */
  roleAttributeEndsAt: timestamp({ settable: 'never', shown: 'whenSet', since: 3 }),
})

export const roleSymbols = ['roleAttributes', 'roleAttributeEndsAt'] as const

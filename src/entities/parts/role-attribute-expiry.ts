import { roleAttributesField, fieldLimits, mapField, timestampField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { expirySchema } from './expiry.ts'

/**
 * Expiry times of role attributes in a request body, by attribute. Null removes the expiry time of
 * an attribute. A PATCH leaves the expiry times of all other attributes unchanged; a PUT with this
 * member leaves only those unchanged that have already passed.
 */
export const roleAttributeExpirySchema = {
  type: 'object',
  maxProperties: fieldLimits.attributesMax,
  additionalProperties: { anyOf: [expirySchema, { type: 'null' }] },
} as const

/** Role attributes of an identity; each attribute may have an expiry time. */
export const roleAttributeFieldDescriptors = markShownInEvents({
  /**
   * Attributes that have not expired: an attribute is removed when log time reaches its expiry
   * time.
   */
  roleAttributes: roleAttributesField(),
  /**
   * Expiry times by attribute, RFC 3339 in UTC. An expired attribute stays listed here, so that a
   * client that still lists the attribute in `roleAttributes` does not assign it again. A PUT
   * without this member leaves the stored times unchanged.
   */
  roleAttributesExpireAt: {
    ...mapField<string | null>({
      settable: 'proposer',
      shown: 'whenSet',
      since: 3,
      values: { type: 'string', format: 'date-time' },
    }),
    mergedOnto: {},
  },
  /**
   * The earliest expiry time of the attributes in `roleAttributes`; null if none of them expires.
   */
  roleAttributeEndsAt: timestampField({ settable: 'never', shown: 'whenSet', since: 3 }),
})

export const roleAttributeSymbols = ['roleAttributes', 'roleAttributeEndsAt'] as const

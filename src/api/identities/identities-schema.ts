import { expirySchema } from '../../entities/parts/expiry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { disableMinutesMax } from '../../entities/parts/identity-credentials.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { defaultApiLimits } from '../limits.ts'
import {
  dateTimeSchema,
  entityRefSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
} from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

// Schemas for operations on identities, on enrollments, and on third-party CAs.

export const disableParamsSchema = objectSchema(
  'disableParams',
  { durationMinutes: { type: 'integer', maximum: disableMinutesMax } },
  ['durationMinutes'],
)

/** A PEM text; the schema sets no limit, because the code that parses the text does. */
export const caVerificationSchema = { name: 'caVerification', schema: textSchema } as const
/** A JWT in compact serialization. */
export const caJwtSchema: NamedSchema = { name: 'caJwt', schema: textSchema }
export const estCertificatesSchema: NamedSchema = { name: 'estCertificates', schema: textSchema }

export const traceSpecSchema = objectSchema('traceSpec', {
  channels: {
    type: ['array', 'null'],
    maxItems: 64,
    items: { type: 'string', maxLength: 256 },
  },
  duration: { type: ['string', 'null'], maxLength: 64 },
  enabled: { type: ['boolean', 'null'] },
  traceId: { type: ['string', 'null'], maxLength: 128 },
})
export const traceDetailSchema: NamedSchema = {
  name: 'traceDetail',
  schema: openObjectSchema({ enabled: booleanSchema, traceId: textSchema, until: dateTimeSchema }),
}

export const serviceConfigsAssignSchema = {
  name: 'serviceConfigsAssignList',
  schema: {
    type: 'array',
    maxItems: defaultApiLimits.serviceConfigsMax,
    items: openObjectSchema({
      configId: { type: 'string', maxLength: 128 },
      serviceId: { type: 'string', maxLength: 128 },
    }),
  },
} as const

/**
 * Schema of the expiry of a new enrollment. Two of OpenZiti's bodies contain this member, under
 * different names.
 */
export function enrollmentExpirySchema(name: 'enrollmentRefresh' | 'reEnroll') {
  return objectSchema(name, { expiresAt: expirySchema }, ['expiresAt'])
}

const refWithUrlName = {
  ...entityRefSchema,
  properties: { ...(entityRefSchema['properties'] as JsonObject), urlName: textSchema },
} as const
export const serviceConfigSchema: NamedSchema = {
  name: 'serviceConfigDetail',
  schema: openObjectSchema({
    config: refWithUrlName,
    configId: textSchema,
    service: refWithUrlName,
    serviceId: textSchema,
  }),
}

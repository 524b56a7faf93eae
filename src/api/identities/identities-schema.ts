import { expirySchema } from '../../entities/parts/expiry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { disableMinutesMax } from '../../entities/parts/identity-credentials.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { defaultApiLimits } from '../limits.ts'
import { dateTime, entityRef, flag, text, wholeObject } from '../../entities/shapes.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/** Schemas for actions on identities, their enrollments and certificate authorities. */
export const disableParams = objectSchema(
  'disableParams',
  { durationMinutes: { type: 'integer', maximum: disableMinutesMax } },
  ['durationMinutes'],
)

/** A PEM text; the code that reads it limits its length. */
export const caVerification = { name: 'caVerification', schema: text } as const
/** A compact JWT. */
export const caJwt: NamedSchema = { name: 'caJwt', schema: text }
export const estCertificates: NamedSchema = { name: 'estCertificates', schema: text }

export const traceSpec = objectSchema('traceSpec', {
  channels: {
    type: ['array', 'null'],
    maxItems: 64,
    items: { type: 'string', maxLength: 256 },
  },
  duration: { type: ['string', 'null'], maxLength: 64 },
  enabled: { type: ['boolean', 'null'] },
  traceId: { type: ['string', 'null'], maxLength: 128 },
})
export const traceDetail: NamedSchema = {
  name: 'traceDetail',
  schema: wholeObject({ enabled: flag, traceId: text, until: dateTime }),
}

export const serviceConfigsAssign = {
  name: 'serviceConfigsAssignList',
  schema: {
    type: 'array',
    maxItems: defaultApiLimits.serviceConfigsMax,
    items: wholeObject({
      configId: { type: 'string', maxLength: 128 },
      serviceId: { type: 'string', maxLength: 128 },
    }),
  },
} as const

/** The expiry of a new enrollment, a member with different names in two of OpenZiti's bodies. */
export function enrollmentExpiry(name: 'enrollmentRefresh' | 'reEnroll') {
  return objectSchema(name, { expiresAt: expirySchema }, ['expiresAt'])
}

const refWithUrlName = {
  ...entityRef,
  properties: { ...(entityRef['properties'] as JsonObject), urlName: text },
} as const
export const serviceConfigSchema: NamedSchema = {
  name: 'serviceConfigDetail',
  schema: wholeObject({
    config: refWithUrlName,
    configId: text,
    service: refWithUrlName,
    serviceId: text,
  }),
}

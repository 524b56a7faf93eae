import { expirySchema } from '../../entities/kinds/enrollment.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { disableMinutesMax } from '../../fsm/identities/identity.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { defaultLimits } from '../limits.ts'
import { dateTime, entityRef, flag, text } from '../../entities/shapes.ts'

/** Actions upon identities, their enrollments and certificate authorities. */
export const disableParams: NamedSchema = {
  name: 'disableParams',
  schema: {
    type: 'object',
    properties: { durationMinutes: { type: 'integer', maximum: disableMinutesMax } },
    required: ['durationMinutes'],
  },
}

/** A PEM text; how much of it is bounded where it is read. */
export const caVerification: NamedSchema = { name: 'caVerification', schema: text }
/** A compact JWT. */
export const caJwt: NamedSchema = { name: 'caJwt', schema: text }
export const estCertificates: NamedSchema = { name: 'estCertificates', schema: text }

export const traceSpec: NamedSchema = {
  name: 'traceSpec',
  schema: {
    type: 'object',
    properties: {
      channels: {
        type: ['array', 'null'],
        maxItems: 64,
        items: { type: 'string', maxLength: 256 },
      },
      duration: { type: ['string', 'null'], maxLength: 64 },
      enabled: { type: ['boolean', 'null'] },
      traceId: { type: ['string', 'null'], maxLength: 128 },
    },
  },
}
export const traceDetail: NamedSchema = {
  name: 'traceDetail',
  schema: {
    type: 'object',
    properties: { enabled: flag, traceId: text, until: dateTime },
    required: ['enabled', 'traceId', 'until'],
  },
}

export const serviceConfigsAssign: NamedSchema = {
  name: 'serviceConfigsAssignList',
  schema: {
    type: 'array',
    maxItems: defaultLimits.serviceConfigsMax,
    items: {
      type: 'object',
      properties: {
        configId: { type: 'string', maxLength: 128 },
        serviceId: { type: 'string', maxLength: 128 },
      },
      required: ['serviceId', 'configId'],
    },
  },
}

/** The one member of two bodies that the API family calls differently. */
export function enrollmentExpiry(name: 'enrollmentRefresh' | 'reEnroll'): NamedSchema {
  return {
    name,
    schema: {
      type: 'object',
      properties: { expiresAt: expirySchema },
      required: ['expiresAt'],
    },
  }
}

const refWithUrlName = {
  ...entityRef,
  properties: { ...(entityRef['properties'] as JsonObject), urlName: text },
} as const
export const serviceConfigSchema: NamedSchema = {
  name: 'serviceConfigDetail',
  schema: {
    type: 'object',
    properties: {
      config: refWithUrlName,
      configId: text,
      service: refWithUrlName,
      serviceId: text,
    },
    required: ['serviceId', 'service', 'configId', 'config'],
  },
}

import type { NamedSchema } from '../../entities/operations.ts'
import {
  booleanSchema,
  textSchema,
  closedObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { textListSchema } from '../schemas/envelope.ts'

const number = { type: 'number' } as const
const textOrNull = { type: ['string', 'null'] } as const

const shownCertificate = closedObjectSchema(
  {
    what: textSchema,
    subject: textSchema,
    issuer: textSchema,
    names: textListSchema,
    notBeforeMs: number,
    notAfterMs: number,
    daysLeft: number,
    level: textSchema,
    isNotYetValid: booleanSchema,
    isTrusted: { type: ['boolean', 'null'] },
    sha256: textSchema,
  },
  ['daysLeft', 'level', 'isNotYetValid', 'isTrusted'],
)

/** Certificates that a controller currently uses (src/api/cluster/pki-control.ts). */
export const activeCertificatesSchema: NamedSchema = {
  name: 'pkiCertificates',
  schema: closedObjectSchema(
    {
      certificates: { type: 'array', items: shownCertificate },
      issuingPem: textOrNull,
      isRenewedHere: booleanSchema,
      renewAtMs: { type: ['number', 'null'] },
      refused: textOrNull,
      alarm: textOrNull,
      serverCertificates: arraySchema(
        closedObjectSchema({
          path: textSchema,
          certificate: { anyOf: [shownCertificate, { type: 'null' }] },
          refused: textOrNull,
        }),
      ),
    },
    ['serverCertificates'],
  ),
}

/**
 * The schema limits no lengths: a validation error contains the refused value, and the key is a
 * secret.
 */
export const issuingAuthorityRequestSchema = objectSchema(
  'pkiIssuingAuthority',
  { certificatePem: textSchema, privateKeyPem: textOrNull },
  ['certificatePem'],
)

export const issuingAuthorityResponseSchema: NamedSchema = {
  name: 'pkiIssuingAuthorityDetail',
  schema: closedObjectSchema({ notAfterMs: number, formerNotAfterMs: number }),
}

export const certificateRequestSchema = objectSchema(
  'pkiCertificateRequest',
  {
    // PKCS #10 request in PEM; the certificate gets its common name.
    requestPem: textSchema,
    // DNS names and IP addresses for the certificate.
    hosts: textListSchema,
    usages: { type: 'array', items: { type: 'string', enum: ['server', 'client'] } },
    days: { type: 'integer' },
  },
  ['requestPem', 'hosts', 'usages', 'days'],
)

export const issuedCertificateSchema: NamedSchema = {
  name: 'pkiCertificate',
  schema: closedObjectSchema({ certificatePem: textSchema, notAfterMs: number }),
}

export const memberCertificateRequestSchema = objectSchema(
  'pkiMemberCertificate',
  { certificatePem: textSchema },
  ['certificatePem'],
)

export const memberCertificateSchema: NamedSchema = {
  name: 'pkiMemberCertificateDetail',
  schema: closedObjectSchema({ id: textSchema, certificatePem: textSchema, notAfterMs: number }),
}

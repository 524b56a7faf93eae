import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text, closedObject, arraySchema } from '../../entities/shapes.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { texts } from '../schemas/envelope.ts'

const number = { type: 'number' } as const
const textOrNull = { type: ['string', 'null'] } as const

const shownCertificate = closedObject(
  {
    what: text,
    subject: text,
    issuer: text,
    names: texts,
    notBeforeMs: number,
    notAfterMs: number,
    daysLeft: number,
    level: text,
    isNotYetValid: flag,
    isTrusted: { type: ['boolean', 'null'] },
    sha256: text,
  },
  ['daysLeft', 'level', 'isNotYetValid', 'isTrusted'],
)

/** Certificates that a controller has in force (src/api/cluster/pki-control.ts). */
export const certificatesInForce: NamedSchema = {
  name: 'pkiCertificates',
  schema: closedObject(
    {
      certificates: { type: 'array', items: shownCertificate },
      issuingPem: textOrNull,
      isRenewedHere: flag,
      renewAtMs: { type: ['number', 'null'] },
      refused: textOrNull,
      alarm: textOrNull,
      serverCertificates: arraySchema(
        closedObject({
          path: text,
          certificate: { anyOf: [shownCertificate, { type: 'null' }] },
          refused: textOrNull,
        }),
      ),
    },
    ['serverCertificates'],
  ),
}

/**
 * The schema sets no limit on the key: an error about the limit would repeat the key, which is a
 * secret.
 */
export const issuingAuthorityRequest = objectSchema(
  'pkiIssuingAuthority',
  { certificatePem: text, privateKeyPem: textOrNull },
  ['certificatePem'],
)

export const issuingAuthorityAnswer: NamedSchema = {
  name: 'pkiIssuingAuthorityDetail',
  schema: closedObject({ notAfterMs: number, formerNotAfterMs: number }),
}

export const certificateRequest = objectSchema(
  'pkiCertificateRequest',
  {
    // PKCS #10 request in PEM. The common name of the request becomes the common name of the
    // certificate.
    requestPem: text,
    // DNS names and IP addresses for the certificate.
    hosts: texts,
    usages: { type: 'array', items: { type: 'string', enum: ['server', 'client'] } },
    days: { type: 'integer' },
  },
  ['requestPem', 'hosts', 'usages', 'days'],
)

export const issuedCertificate: NamedSchema = {
  name: 'pkiCertificate',
  schema: closedObject({ certificatePem: text, notAfterMs: number }),
}

export const memberCertificateRequest = objectSchema(
  'pkiMemberCertificate',
  { certificatePem: text },
  ['certificatePem'],
)

export const memberCertificate: NamedSchema = {
  name: 'pkiMemberCertificateDetail',
  schema: closedObject({ id: text, certificatePem: text, notAfterMs: number }),
}

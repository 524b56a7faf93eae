import { passwordSchema } from '../../entities/kinds/authenticator.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { controllerSchema } from '../schemas/about.ts'
import { baseRecordProperties, baseRecordRequired } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import {
  dateTimeSchema,
  linksSchema,
  textSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'

// JSON Schemas of enrollments and certificate requests.

const csr = { type: ['string', 'null'], maxLength: 16_384 } as const
const optional = { type: ['string', 'null'], maxLength: 128 } as const
const password = { ...passwordSchema, type: ['string', 'null'] } as const
const name = { type: ['string', 'null'], maxLength: 512 } as const

/** Body for every enrollment method; a method ignores the members that it does not need. */
export const genericEnrollmentSchema = objectSchema('genericEnroll', {
  token: optional,
  clientCsr: csr,
  certCsr: csr,
  serverCertCsr: csr,
  name,
  username: name,
  password,
})
export const ottEnrollmentSchema = objectSchema('ottEnrollmentRequest', {
  token: optional,
  clientCsr: csr,
})
export const routerEnrollmentSchema = objectSchema('erOttEnrollmentRequest', {
  token: optional,
  clientCsr: csr,
  serverCsr: csr,
  certCsr: csr,
  serverCertCsr: csr,
})
export const tokenEnrollmentSchema = objectSchema('tokenEnrollmentRequest', { clientCsr: csr })
export const caEnrollmentSchema = objectSchema('caEnrollmentRequest', { name })
export const updbEnrollmentSchema = objectSchema('updbEnrollmentRequest', {
  username: name,
  password,
})
export const extendRouterEnrollmentSchema = objectSchema(
  'routerExtendEnrollmentRequest',
  { certCsr: csr, serverCertCsr: csr },
  ['certCsr', 'serverCertCsr'],
)
export const enrollmentChallengeSchema = objectSchema(
  'nonceChallenge',
  {
    keyId: { type: 'string', maxLength: 256 },
    nonce: { type: 'string', format: 'uuid', maxLength: 64 },
  },
  ['nonce', 'keyId'],
)
export const extendIdentityEnrollmentSchema = objectSchema(
  'identityExtendEnrollmentRequest',
  { clientCertCsr: { type: 'string', maxLength: 16_384 } },
  ['clientCertCsr'],
)
export const confirmExtendedCertificateSchema = objectSchema(
  'identityExtendValidateEnrollmentRequest',
  { clientCert: { type: 'string', maxLength: 65_536 } },
  ['clientCert'],
)
export const sessionCertificateCreateSchema = objectSchema(
  'currentApiSessionCertificateCreate',
  { csr: { type: 'string', maxLength: 16_384 } },
  ['csr'],
)

const controllers = { type: 'array', items: controllerSchema.schema } as const
const routerName = { ...textSchema, description: 'name of the enrolled router' } as const
/** `cert` and `ca` are absent if no certificate is issued; `controllers` is absent for a router. */
export const enrollmentCertsSchema = objectSchema('enrollmentCerts', {
  ca: textSchema,
  cert: textSchema,
  serverCert: textSchema,
  name: routerName,
  controllers,
})
/** Response for an identity that enrolled with an existing credential. */
export const enrolledIdentitySchema = objectSchema('enrollmentResponse', { controllers }, [
  'controllers',
])
export const enrolledUpdbSchema = objectSchema(
  'enrollmentResponseUpdb',
  { username: textSchema, controllers },
  ['username', 'controllers'],
)
/** Response of the enrollment operation that derives the method from the token. */
export const anyEnrollmentResponseSchema = objectSchema('enrollResponse', {
  ca: textSchema,
  cert: textSchema,
  serverCert: textSchema,
  username: textSchema,
  name: routerName,
  controllers,
})
export const identityExtensionCertsSchema = objectSchema(
  'identityExtendCerts',
  { ca: textSchema, clientCert: textSchema },
  ['ca', 'clientCert'],
)
export const challengeSignatureSchema = objectSchema(
  'nonceSignature',
  { algorithm: textSchema, caPool: textSchema, kid: textSchema, signature: textSchema },
  ['signature', 'algorithm', 'kid', 'caPool'],
)
export const jwkSetSchema: NamedSchema = {
  name: 'jwks',
  schema: openObjectSchema({
    keys: arraySchema({
      type: 'object',
      properties: {
        kty: textSchema,
        use: textSchema,
        alg: textSchema,
        kid: textSchema,
        crv: textSchema,
        x: textSchema,
        y: textSchema,
        n: textSchema,
        e: textSchema,
        x5c: { type: 'array', items: textSchema },
        x5t: textSchema,
        'x5t#S256': textSchema,
      },
      required: ['kty'],
    }),
  }),
}
export const sessionCertificateCreatedSchema = objectSchema(
  'currentApiSessionCertificateCreateResponse',
  { _links: linksSchema, id: textSchema, cas: textSchema, certificate: textSchema },
  ['_links', 'id', 'certificate'],
)
export const sessionCertificateDetailSchema = objectSchema(
  'currentApiSessionCertificateDetail',
  {
    ...baseRecordProperties,
    certificate: textSchema,
    fingerprint: textSchema,
    subject: textSchema,
    validFrom: dateTimeSchema,
    validTo: dateTimeSchema,
  },
  [...baseRecordRequired, 'certificate', 'fingerprint', 'subject', 'validFrom', 'validTo'],
)

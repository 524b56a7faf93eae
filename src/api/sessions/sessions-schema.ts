import { passwordSchema, usernameSchema } from '../../entities/kinds/authenticator.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  entityRefSchema,
  envInfoSchema,
  booleanSchema,
  sdkInfoSchema,
  textSchema,
} from '../../entities/response-schemas.ts'
import {
  integerSchema,
  textListSchema,
  baseRecordProperties,
  baseRecordRequired,
} from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

// Schemas of log-ins, sessions and the caller's own authenticators.

export const credentialsSchema = objectSchema('authenticate', {
  configTypes: { type: ['array', 'null'], items: textSchema, maxItems: 100 },
  envInfo: { ...envInfoSchema, type: ['object', 'null'] },
  password: passwordSchema,
  sdkInfo: { ...sdkInfoSchema, type: ['object', 'null'] },
  username: usernameSchema,
})

const sessionProperties = {
  ...baseRecordProperties,
  authQueries: { type: 'array', items: { type: 'object' } },
  authenticatorId: textSchema,
  cachedLastActivityAt: dateTimeSchema,
  configTypes: textListSchema,
  expirationSeconds: integerSchema,
  expiresAt: dateTimeSchema,
  identity: entityRefSchema,
  identityId: textSchema,
  improperClientCertChain: booleanSchema,
  ipAddress: textSchema,
  isCertExtendRequested: booleanSchema,
  isCertExtendable: booleanSchema,
  isCertKeyRollRequested: booleanSchema,
  isMfaComplete: booleanSchema,
  isMfaRequired: booleanSchema,
  lastActivityAt: dateTimeSchema,
  token: textSchema,
} as const
const sessionRequired = [
  ...baseRecordRequired,
  'authQueries',
  'authenticatorId',
  'configTypes',
  'identity',
  'identityId',
  'ipAddress',
  'isCertExtendable',
  'isMfaComplete',
  'isMfaRequired',
  'token',
] as const

export const currentSessionSchema: NamedSchema = {
  name: 'currentApiSessionDetail',
  schema: {
    type: 'object',
    properties: sessionProperties,
    required: [...sessionRequired, 'expirationSeconds', 'expiresAt'],
  },
}

export const { expirationSeconds, expiresAt, ...listedSessionProperties } = sessionProperties
export const sessionSchema: NamedSchema = {
  name: 'apiSessionDetail',
  schema: {
    type: 'object',
    properties: listedSessionProperties,
    required: [...sessionRequired],
  },
}

const ownAuthenticatorProperties = {
  currentPassword: passwordSchema,
  tags: { type: ['object', 'null'], additionalProperties: true },
} as const

export const ownAuthenticatorUpdateSchema = objectSchema(
  'authenticatorUpdateWithCurrent',
  { ...ownAuthenticatorProperties, password: passwordSchema, username: usernameSchema },
  ['currentPassword', 'password', 'username'],
)

export const ownAuthenticatorPatchSchema = objectSchema(
  'authenticatorPatchWithCurrent',
  {
    ...ownAuthenticatorProperties,
    password: { ...passwordSchema, type: ['string', 'null'] },
    username: { ...usernameSchema, type: ['string', 'null'] },
  },
  ['currentPassword'],
)

export const authenticatorExtensionRequestSchema = objectSchema('requestExtendAuthenticator', {
  rollKeys: { type: ['boolean', 'null'] },
})

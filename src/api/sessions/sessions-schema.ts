import { passwordSchema, usernameSchema } from '../../entities/kinds/authenticator.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTime,
  entityRef,
  envInfoSchema,
  flag,
  sdkInfoSchema,
  text,
} from '../../entities/shapes.ts'
import { integer, texts, baseProperties, baseRequired } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/** Schemas for log-ins, sessions and the caller's authenticators. */
export const credentials = objectSchema('authenticate', {
  configTypes: { type: ['array', 'null'], items: text, maxItems: 100 },
  envInfo: { ...envInfoSchema, type: ['object', 'null'] },
  password: passwordSchema,
  sdkInfo: { ...sdkInfoSchema, type: ['object', 'null'] },
  username: usernameSchema,
})

const sessionProperties = {
  ...baseProperties,
  authQueries: { type: 'array', items: { type: 'object' } },
  authenticatorId: text,
  cachedLastActivityAt: dateTime,
  configTypes: texts,
  expirationSeconds: integer,
  expiresAt: dateTime,
  identity: entityRef,
  identityId: text,
  improperClientCertChain: flag,
  ipAddress: text,
  isCertExtendRequested: flag,
  isCertExtendable: flag,
  isCertKeyRollRequested: flag,
  isMfaComplete: flag,
  isMfaRequired: flag,
  lastActivityAt: dateTime,
  token: text,
} as const
const sessionRequired = [
  ...baseRequired,
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

export const currentSession: NamedSchema = {
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

export const ownAuthenticatorUpdate = objectSchema(
  'authenticatorUpdateWithCurrent',
  { ...ownAuthenticatorProperties, password: passwordSchema, username: usernameSchema },
  ['currentPassword', 'password', 'username'],
)

export const ownAuthenticatorPatch = objectSchema(
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

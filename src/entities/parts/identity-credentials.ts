import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { computedField, timestampField } from '../fields.ts'
import { nullableSchema } from '../nested-schemas.ts'
import {
  dateTimeSchema,
  entityRefSchema,
  textSchema,
  openObjectSchema,
} from '../response-schemas.ts'

/**
 * Maximum minutes for which an identity can be disabled, unless it is disabled without an end: 100
 * years. The end of a much longer period could not be represented as a time.
 */
export const disableMinutesMax = 52_560_000

const enrollment: JsonObject = {
  type: 'object',
  properties: { expiresAt: dateTimeSchema, id: textSchema, jwt: textSchema, token: textSchema },
}

const enrollments: JsonObject = {
  type: 'object',
  properties: {
    ott: enrollment,
    ottca: {
      type: 'object',
      properties: {
        ca: entityRefSchema,
        caId: textSchema,
        expiresAt: dateTimeSchema,
        id: textSchema,
        jwt: textSchema,
        token: textSchema,
      },
    },
    updb: enrollment,
  },
}

const authenticators: JsonObject = {
  type: 'object',
  properties: {
    cert: { type: 'object', properties: { fingerprint: textSchema, id: textSchema } },
    updb: { type: 'object', properties: { id: textSchema, username: textSchema } },
  },
}

/** One authenticator of each method, for an identity's detail. */
const ownAuthenticators = computedField(
  {
    from: 'byKey',
    of: 'authenticator',
    by: 'identityId',
    key: 'method',
    shows: { cert: ['fingerprint'], updb: ['username'] },
  },
  authenticators,
)
const ownEnrollments = computedField(
  {
    from: 'byKey',
    of: 'enrollment',
    by: 'identityId',
    key: 'method',
    shows: {
      ott: ['expiresAt', 'jwt', 'token'],
      ottca: ['ca', 'caId', 'expiresAt', 'jwt', 'token'],
      updb: ['expiresAt', 'jwt', 'token'],
    },
  },
  enrollments,
)

/**
 * Lockout of password log-in after too many wrong attempts. A lockout without an expiry time lasts
 * until an administrator unlocks the password.
 */
const passwordLock = computedField(
  { from: 'passwordLock' },
  openObjectSchema({ lockedAt: dateTimeSchema, lockedUntil: nullableSchema(dateTimeSchema) }),
  { shown: 'whenSet' },
)

/**
 * The credentials, open enrollments and password lockout of an identity, and the time when it was
 * last seen, as the identity's detail shows them.
 */
export const identityCredentialFields = {
  authenticators: ownAuthenticators,
  enrollment: ownEnrollments,
  passwordLock,
  lastSeenAt: timestampField({ since: 3, settable: 'never', shownAs: { from: 'lastSeen' } }),
} as const

/**
 * Enrollments to create together with an identity: with a user name, with the id of a CA, or with a
 * plain one-time token.
 */
export const requestedEnrollmentsSchema = {
  type: 'object',
  properties: {
    ott: { type: ['boolean', 'null'] },
    ottca: { type: ['string', 'null'], maxLength: 128 },
    updb: { type: ['string', 'null'], maxLength: 100 },
  },
} as const

/** Filter symbols for the current state of an identity. */
export const identityStateSymbols = [
  'isDefaultAdmin',
  { name: 'disabled', live: 'isDisabled', type: 'boolean' },
  { name: 'hasApiSession', live: 'hasApiSession', type: 'boolean' },
  { name: 'isLocked', live: 'isLocked', type: 'boolean' },
  { name: 'lastSeenAt', live: 'lastSeenAt', type: 'datetime' },
  { name: 'edgeRouters', list: 'edge-routers' },
  { name: 'hasEdgeRouterConnection', live: 'isConnected', type: 'boolean' },
] as const

import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested-schemas.ts'
import { urlCharactersMax } from '../../entities/kinds/client-external-jwt-signer.ts'
import {
  arraySchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
} from '../../entities/response-schemas.ts'
import { tokenChecks } from '../../auth/log-in/token-test.ts'
import { textListSchema } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const optionalText = nullableSchema(textSchema)

export const discoveryRequestSchema = objectSchema(
  'externalJwtSignerDiscovery',
  { issuer: { type: 'string', minLength: 1, maxLength: urlCharactersMax } },
  ['issuer'],
)

export const discoveryResponseSchema: NamedSchema = {
  name: 'externalJwtSignerDiscovered',
  schema: openObjectSchema({
    issuer: textSchema,
    jwksEndpoint: textSchema,
    authorizationEndpoint: optionalText,
    scopes: textListSchema,
    keyIds: nullableSchema(textListSchema),
    keysFault: optionalText,
  }),
}

/**
 * The schema does not limit the length of the token: a validation error contains the refused value,
 * and the token is a secret. The test itself refuses a token that is too long.
 */
export const tokenTestRequestSchema = objectSchema(
  'externalJwtSignerTest',
  { token: textSchema, signerId: { type: 'string', maxLength: 128 } },
  ['token'],
)

const bounded = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength }) as const
const signerId = bounded(128)

export const authorizationEndpointRequestSchema = objectSchema('providerLogInBegin', { signerId }, [
  'signerId',
])
export const authorizationEndpointSchema: NamedSchema = {
  name: 'providerLogInEndpoint',
  schema: openObjectSchema({ authorizationEndpoint: textSchema }),
}

/**
 * The schema does not limit the lengths of `code` and `codeVerifier`: a validation error contains
 * the refused value, and both are secrets.
 */
export const providerTokenRequestSchema = objectSchema(
  'providerLogInCode',
  {
    signerId,
    code: textSchema,
    codeVerifier: textSchema,
    redirectUri: bounded(urlCharactersMax),
    issuer: {
      type: 'string',
      maxLength: urlCharactersMax,
      description: 'parameter iss of the redirect with the code (RFC 9207), if it has one',
    },
  },
  ['signerId', 'code', 'codeVerifier', 'redirectUri'],
)
export const providerTokenSchema: NamedSchema = {
  name: 'providerLogInToken',
  schema: openObjectSchema({ token: textSchema }),
}

const named = openObjectSchema({ id: textSchema, name: textSchema })

export const tokenTestResponseSchema: NamedSchema = {
  name: 'externalJwtSignerTested',
  schema: openObjectSchema({
    logsIn: booleanSchema,
    enrolls: booleanSchema,
    signer: nullableSchema(named),
    identity: nullableSchema(named),
    checks: arraySchema(
      openObjectSchema({
        check: { type: 'string', enum: tokenChecks },
        state: { type: 'string', enum: ['passed', 'failed', 'unchecked'] },
        reason: optionalText,
        message: optionalText,
        claim: optionalText,
        found: optionalText,
        expected: optionalText,
      }),
    ),
    claimNames: textListSchema,
  }),
}

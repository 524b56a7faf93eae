import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested.ts'
import { urlCharactersMax } from '../../entities/kinds/client-external-jwt-signer.ts'
import { arraySchema, flag, text, wholeObject } from '../../entities/shapes.ts'
import { tokenChecks } from '../../auth/log-in/token-test.ts'
import { texts } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const optionalText = nullableSchema(text)

export const discoveryRequestSchema = objectSchema(
  'externalJwtSignerDiscovery',
  { issuer: { type: 'string', minLength: 1, maxLength: urlCharactersMax } },
  ['issuer'],
)

export const discoveryResponseSchema: NamedSchema = {
  name: 'externalJwtSignerDiscovered',
  schema: wholeObject({
    issuer: text,
    jwksEndpoint: text,
    authorizationEndpoint: optionalText,
    scopes: texts,
    keyIds: nullableSchema(texts),
    keysFault: optionalText,
  }),
}

/**
 * The token has no maximum length here: a fault of the schema would repeat it in the answer. The
 * test itself refuses a long one.
 */
export const tokenTestRequestSchema = objectSchema(
  'externalJwtSignerTest',
  { token: text, signerId: { type: 'string', maxLength: 128 } },
  ['token'],
)

const bounded = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength }) as const
const signerId = bounded(128)

export const providerEndpointRequestSchema = objectSchema('providerLogInBegin', { signerId }, [
  'signerId',
])
export const providerEndpointSchema: NamedSchema = {
  name: 'providerLogInEndpoint',
  schema: wholeObject({ authorizationEndpoint: text }),
}

/** `code` and `codeVerifier` have no bounds here, because a fault would repeat them. */
export const providerTokenRequestSchema = objectSchema(
  'providerLogInCode',
  { signerId, code: text, codeVerifier: text, redirectUri: bounded(urlCharactersMax) },
  ['signerId', 'code', 'codeVerifier', 'redirectUri'],
)
export const providerTokenSchema: NamedSchema = {
  name: 'providerLogInToken',
  schema: wholeObject({ token: text }),
}

const named = wholeObject({ id: text, name: text })

export const tokenTestResponseSchema: NamedSchema = {
  name: 'externalJwtSignerTested',
  schema: wholeObject({
    logsIn: flag,
    enrolls: flag,
    signer: nullableSchema(named),
    identity: nullableSchema(named),
    checks: arraySchema(
      wholeObject({
        check: { type: 'string', enum: tokenChecks },
        state: { type: 'string', enum: ['passed', 'failed', 'unchecked'] },
        reason: optionalText,
        message: optionalText,
        claim: optionalText,
        found: optionalText,
        expected: optionalText,
      }),
    ),
    claimNames: texts,
  }),
}

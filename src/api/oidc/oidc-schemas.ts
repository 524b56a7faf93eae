import type { NamedSchema } from '../../entities/operations.ts'
import { envInfoSchema, sdkInfoSchema, textSchema } from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const FORM_CHARACTERS_MAX = 12 * 1024
const field = { type: ['string', 'null'], maxLength: FORM_CHARACTERS_MAX } as const

/** JSON body of the log-in steps; forms have the same field names. */
export const logInFormSchema = objectSchema('oidcLogIn', {
  id: field,
  username: field,
  password: field,
  code: field,
  csrPem: field,
  configTypes: { type: ['array', 'null'], items: textSchema, maxItems: 100 },
  envInfo: { ...envInfoSchema, type: ['object', 'null'] },
  sdkInfo: { ...sdkInfoSchema, type: ['object', 'null'] },
})

/** Parameters of the OAuth endpoints, by name. */
const oauthForm = objectSchema('oauthParameters', {})

const bareObject: NamedSchema = { name: 'oauthAnswer', schema: { type: 'object' } }
export const oauthFormBody = {
  schema: oauthForm,
  isRequired: false,
  textTypes: ['application/x-www-form-urlencoded'],
} as const
export const logInRequestBody = {
  schema: logInFormSchema,
  isRequired: false,
  textTypes: ['application/x-www-form-urlencoded'],
} as const
/** Properties that all operations of the OpenID provider share. */
export const oidcOperationDefaults = {
  apis: ['oidc'],
  permission: 'public',
  tag: 'oidc',
  success: 200,
  response: { kind: 'bare', schema: bareObject, ignoresAccept: true },
} as const
/** Maximum size of a form in a request body. */
// @guard oidc/floods--size
export const OAUTH_FORM_BYTES_MAX = 64 * 1024
export const hostHeaderParameter = [{ name: 'host', description: 'host of the issuer' }] as const

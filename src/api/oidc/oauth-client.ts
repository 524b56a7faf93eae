import { OAuthError } from '../../auth/oidc/oauth-error.ts'
import { oidcClientIds } from '../../pki/oidc-token.ts'
import type { RequestContext } from '../http/request-context.ts'

/**
 * The OAuth client of a request, which is named in the form, or by HTTP Basic authentication with
 * an empty secret. If both name a client, the names must be equal.
 * @throws {OAuthError} invalid_client.
 */
export function readOauthClientId({ headers }: RequestContext, named: string | undefined): string {
  const basic = /^basic ([A-Za-z0-9+/=]{1,200})$/i.exec(headers['authorization'] ?? '')?.[1]
  const [user = '', secret = ''] =
    basic === undefined ? [] : Buffer.from(basic, 'base64').toString('utf8').split(':', 2)
  // Does not decode the user name, because no known client id contains escaped characters.
  const clientId = named ?? user
  const agrees = basic === undefined || (user === clientId && secret === '')
  if (agrees && oidcClientIds.includes(clientId)) return clientId
  throw new OAuthError('invalid_client', `the client must be one of ${oidcClientIds.join(', ')}`)
}

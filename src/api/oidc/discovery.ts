import { Problem } from '../../lib/problems.ts'
import { scopesSupported } from '../../auth/oidc/public-clients.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { Operation } from '../http/operation.ts'
import type { Issuers } from './issuers.ts'
import { jsonResponseWithoutEnvelope } from './oauth-responses.ts'
import { hostHeaderParameter, oidcOperationDefaults } from './oidc-schemas.ts'

interface DiscoveryOperationsDeps {
  readonly jwt: JwtSigner
  readonly issuers: Issuers
}

const common = {
  ...oidcOperationDefaults,
  method: 'GET',
  refusalShape: 'bare',
} as const

/**
 * Operations for OpenID Connect Discovery 1.0 and the public keys of the controllers (RFC 7517).
 */
export function discoveryOperations({ jwt, issuers }: DiscoveryOperationsDeps): Operation[] {
  return [
    {
      ...common,
      operationId: 'oidcConfiguration',
      summary: 'Show the endpoints of the OpenID provider',
      path: '/.well-known/openid-configuration',
      headers: hostHeaderParameter,
      refusals: [404],
      handle: (call) => {
        const issuer = issuers.of(call)
        if (issuer === null) throw unknownHostProblem()
        const algorithms = [...new Set(jwt.publicJwks().map(({ alg }) => String(alg)))]
        return jsonResponseWithoutEnvelope({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/oauth/token`,
          revocation_endpoint: `${issuer}/revoke`,
          userinfo_endpoint: `${issuer}/userinfo`,
          end_session_endpoint: `${issuer}/end_session`,
          device_authorization_endpoint: `${issuer}/device_authorization`,
          jwks_uri: `${issuer}/keys`,
          scopes_supported: [...scopesSupported],
          response_types_supported: ['code'],
          response_modes_supported: ['query'],
          grant_types_supported: [...grantTypes],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: algorithms,
          token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
          code_challenge_methods_supported: ['S256'],
          authorization_response_iss_parameter_supported: true,
          openziti_endpoints: {
            password: `${issuer}/login/password`,
            cert: `${issuer}/login/cert`,
            ext_jwt: `${issuer}/login/ext-jwt`,
            totp: `${issuer}/login/totp`,
            totp_enroll: `${issuer}/login/totp/enroll`,
            totp_enroll_verify: `${issuer}/login/totp/enroll/verify`,
            auth_queries: `${issuer}/login/auth-queries`,
          },
        })
      },
    },
    {
      ...common,
      operationId: 'oidcKeys',
      summary: 'List the public keys that verify the tokens of all controllers',
      path: '/keys',
      handle: () => jsonResponseWithoutEnvelope({ keys: jwt.publicJwks() }),
    },
  ]
}

/** Grant type of device log-ins (RFC 8628, 3.4). */
export const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'

const grantTypes: readonly string[] = [
  'authorization_code',
  'refresh_token',
  DEVICE_GRANT_TYPE,
  'urn:ietf:params:oauth:grant-type:token-exchange',
]

/** The problem for a request whose `Host` is not an address of this controller. */
export function unknownHostProblem(): Problem {
  return new Problem('NOT_FOUND', {
    detail: 'this controller is not an OpenID provider under that host; use an advertised address',
  })
}

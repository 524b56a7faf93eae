import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { ProviderLogIns } from '../../auth/tokens/provider-log-ins.ts'
import { addressShareKey } from '../../lib/bounds/source-network.ts'
import { WindowedQuota } from '../../lib/bounds/quota.ts'
import type { Clock } from '../../lib/clock.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import type { ApiLimits } from '../limits.ts'
import {
  authorizationEndpointRequestSchema,
  authorizationEndpointSchema,
  providerTokenRequestSchema,
  providerTokenSchema,
} from './signers-schema.ts'

interface ProviderLogInDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly providerLogIns: ProviderLogIns
}

const WINDOW_MS = 60_000
const BODY_BYTES_MAX = 16_384

const common = {
  tag: 'externalJwtSigners',
  apis: ['client'],
  permission: 'public',
  method: 'POST',
  success: 200,
  bodyBytesMax: BODY_BYTES_MAX,
  refusals: [401, 404, 429],
} as const
const endpointBody = { schema: authorizationEndpointRequestSchema, isRequired: true } as const
const tokenBody = { schema: providerTokenRequestSchema, isRequired: true } as const

/**
 * Operations with which the console logs a user in at an identity provider. These operations need
 * no session, because they return only data that any client of the provider can get.
 */
export function providerLogInOperations(deps: ProviderLogInDeps): Operation[] {
  const { limits, clock, providerLogIns } = deps
  const { providerLogInsOfOneMax: ofOneMax, providerLogInsMax: allMax } = limits
  const quota = new WindowedQuota({ ofOneMax, allMax, windowMs: WINDOW_MS }, clock)
  const signerOf = (call: RequestContext, id: string): ExternalJwtSigner => {
    // @guard provider-log-in--rate
    if (!quota.take(addressShareKey(call.credentials.address))) {
      const retryAfterSeconds = Math.max(1, Math.ceil(quota.leftMs / 1000))
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds })
    }
    const signer = deps.state.get('externalJwtSigner', id)
    // @guard provider-log-in--enabled
    const isOffered =
      signer?.enabled === true && signer.externalAuthUrl !== '' && signer.clientId !== ''
    if (!isOffered) throw new Problem('NOT_FOUND', { detail: 'no signer with this ID logs in' })
    return signer
  }
  return [
    operationWithBody({
      ...common,
      operationId: 'beginProviderLogIn',
      summary: 'Find where a browser logs in at the provider of a signer',
      path: '/provider-log-in/endpoint',
      body: endpointBody,
      response: { kind: 'detail', schema: authorizationEndpointSchema },
      handle: async (call, { signerId }) => {
        const signer = signerOf(call, signerId)
        const authorizationEndpoint = await providerLogIns.authorizationEndpoint(signer)
        if (authorizationEndpoint !== null) return detailResponse({ authorizationEndpoint })
        throw fieldProblem('signerId', 'the provider of this signer offers no log-in now')
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'redeemProviderCode',
      summary: 'Redeem the code of a provider for the token that logs in',
      path: '/provider-log-in/token',
      body: tokenBody,
      response: { kind: 'detail', schema: providerTokenSchema },
      handle: async (call, { signerId, ...code }) => {
        const token = await providerLogIns.redeem(signerOf(call, signerId), code)
        if (token === null) throw new Problem('INVALID_AUTH')
        return detailResponse({ token })
      },
    }),
  ]
}

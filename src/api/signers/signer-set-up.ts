import { type TokenTestReport, testToken } from '../../auth/log-in/token-test.ts'
import type { ExternalJwtLogInDeps } from '../../auth/log-in/external-jwt.ts'
import { type KeyFetcher, KeyFetchError } from '../../auth/tokens/key-fetcher.ts'
import { discoverProvider } from '../../auth/tokens/provider-discovery.ts'
import { WindowedQuota } from '../../lib/bounds/quota.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { refusalReasons } from '../../lib/refusal-reason.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import { type Operation, type OperationBody, operationWithBody } from '../http/operation.ts'
import type { ApiLimits } from '../limits.ts'
import {
  discoveryRequestSchema,
  discoveryResponseSchema,
  tokenTestRequestSchema,
  tokenTestResponseSchema,
} from './signers-schema.ts'

interface SignerSetUpDeps extends ExternalJwtLogInDeps {
  readonly keyEndpoint: KeyFetcher
  readonly limits: ApiLimits
}

const WINDOW_MS = 60_000
const discovery = { schema: discoveryRequestSchema, isRequired: true } as const
const test = { schema: tokenTestRequestSchema, isRequired: true } as const

const common = {
  tag: 'externalJwtSigners',
  apis: ['management'],
  // @guard signer-set-up--caller
  permission: 'admin',
  method: 'POST',
  success: 200,
} as const

/** Operations that help an administrator to set up an external JWT signer; they write nothing. */
export function signerSetUpOperations(deps: SignerSetUpDeps): Operation[] {
  const { signerTestsOfOneMax: ofOneMax, signerTestsMax: allMax } = deps.limits
  const quota = new WindowedQuota({ ofOneMax, allMax, windowMs: WINDOW_MS }, deps.clock)
  const take = ({ sharer }: RequestContext): void => {
    // @guard signer-set-up--rate
    if (quota.take(sharer)) return
    const retryAfterSeconds = Math.max(1, Math.ceil(quota.leftMs / 1000))
    throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds })
  }
  return [
    operationWithBody({
      ...common,
      operationId: 'discoverExternalJwtSigner',
      summary:
        'Read what an OpenID provider publishes about itself, and whether its keys are usable',
      path: '/jwt-signer-setup/discover',
      body: discovery,
      response: { kind: 'detail', schema: discoveryResponseSchema },
      handle: (call, { issuer }) => {
        take(call)
        return discovered(deps, issuer)
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'testExternalJwtSigner',
      summary: 'Test a token: the result of each check, and the identity that it would log in',
      path: '/jwt-signer-setup/test',
      body: test,
      refusals: [404],
      response: { kind: 'detail', schema: tokenTestResponseSchema },
      handle: (call, asked) => {
        take(call)
        return tested(deps, call, asked)
      },
    }),
  ]
}

async function discovered(
  { keyEndpoint, limits }: SignerSetUpDeps,
  issuer: string,
): Promise<Reply> {
  try {
    const {
      jwksUri,
      tokenEndpoint: _,
      namesIssuer: _named,
      ...found
    } = await discoverProvider(keyEndpoint, issuer, limits.keySetKeysMax)
    return detailResponse({ ...found, jwksEndpoint: jwksUri })
  } catch (error) {
    if (!(error instanceof KeyFetchError)) throw error
    throw fieldProblem('issuer', `the provider cannot be used: ${error.message}`)
  }
}

async function tested(
  deps: SignerSetUpDeps,
  call: RequestContext,
  { token, signerId }: OperationBody<typeof test>,
): Promise<Reply> {
  // Reads the latest state, because another controller may have just changed the signer or the
  // identity.
  await deps.reads.reachLatest()
  const signer = signerId === undefined ? null : deps.state.get('externalJwtSigner', signerId)
  if (signer === undefined) throw new Problem('NOT_FOUND', { detail: 'no signer has this ID' })
  // Trims the token, because users paste it with a line break at the end.
  const report = await testToken(deps, call.credentials.address, token.trim(), signer)
  return detailResponse(reportView(report))
}

function reportView({ checks, signer, identity, ...report }: TokenTestReport): JsonObject {
  return {
    ...report,
    signer: signer === null ? null : { id: signer.id, name: signer.name },
    identity: identity === null ? null : { id: identity.id, name: identity.name },
    checks: checks.map((one) => ({
      ...one,
      message: one.reason === null ? null : refusalReasons[one.reason],
    })),
  }
}

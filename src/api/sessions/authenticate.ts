import { Problem, fieldProblem } from '../../lib/problems.ts'
import { pendingFactorHeaders } from '../http/responses/www-authenticate.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import { declareQueryParameters } from '../http/query-parameters.ts'
import { type LogInCredential, logInProblem, type LogInService } from '../../auth/log-in/log-in.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { currentSessionView } from './session-view.ts'
import { credentialsSchema, currentSessionSchema } from './sessions-schema.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { Clock } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ApiLimits } from '../limits.ts'
import type { SessionTracker } from '../../auth/sessions/session-tracker.ts'
import type { SessionTokenSigner } from '../../auth/sessions/session-token-signer.ts'

interface AuthenticateOperationsDeps {
  readonly clock: Clock
  readonly state: StateView
  readonly limits: ApiLimits
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly logIns: LogInService
}

/**
 * Maximum bytes of a log-in body. The limit is low, so that a caller without a session cannot
 * occupy the memory for large bodies.
 */
const LOG_IN_BODY_BYTES_MAX = 64 * 1024

type LogInBody = SchemaValue<typeof credentialsSchema.schema>

/** Operations for primary authentication. */
export function authenticationOperations(deps: AuthenticateOperationsDeps): Operation[] {
  return [
    operationWithBody({
      operationId: 'authenticate',
      summary: 'Log in by password, client certificate or token of an external JWT signer',
      tag: 'authentication',
      apis: ['client', 'management'],
      method: 'POST',
      path: '/authenticate',
      permission: 'public',
      query: declareQueryParameters(['method']).map((method) => ({ ...method, isRequired: true })),
      body: { schema: credentialsSchema, isRequired: false },
      bodyBytesMax: LOG_IN_BODY_BYTES_MAX,
      success: 200,
      response: { kind: 'detail', schema: currentSessionSchema },
      refusals: [401],
      logInMethod: (call) => call.first('method') ?? '',
      handle: (call, body) => logIn(deps, call, body),
    }),
  ]
}

async function logIn(
  deps: AuthenticateOperationsDeps,
  call: RequestContext,
  body: LogInBody,
): Promise<Reply> {
  const { credentials, api } = call
  const method = methodOf(call.first('method'), body)
  const request = { write: toWriteRequest(call), turn: call }
  const found = await deps.logIns.logIn(method, credentials, { ...body, api }, request)
  if ('code' in found) {
    call.challenge = found.challenge
    throw logInProblem(found)
  }
  const { principal, token, isExtendRequested } = found
  call.caller = principal
  return {
    ...detailResponse(currentSessionView(deps, principal)),
    headers: {
      'zt-session': token,
      'net-session': token,
      ...(isExtendRequested ? { 'ziti-authenticator-extend-requested': 'true' } : {}),
      ...(principal.pendingFactors.length === 0
        ? {}
        : pendingFactorHeaders(deps, credentials, principal)),
    },
  }
}

/**
 * The credential that a log-in request contains.
 * @throws {Problem} INVALID_AUTH_METHOD; COULD_NOT_VALIDATE if the user name or password is
 * missing.
 */
function methodOf(by: string | undefined, { username, password }: LogInBody): LogInCredential {
  switch (by) {
    case 'cert':
    case 'ext-jwt':
      return { by }
    case 'password':
      if (username === undefined) throw fieldProblem('username', 'username is required')
      if (password === undefined) throw fieldProblem('password', 'password is required')
      return { by, username, password }
    default:
      throw new Problem('INVALID_AUTH_METHOD')
  }
}

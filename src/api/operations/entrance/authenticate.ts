import { CertificateLogIn } from '../../auth/primary/certificate.ts'
import { ExternalJwtLogIn } from '../../auth/primary/external-jwt.ts'
import { PasswordLogIn } from '../../auth/primary/password.ts'
import type { LogInBody } from '../../auth/open-session.ts'
import type { RequestContext } from '../../call.ts'
import { Problem } from '../../../lib/problems.ts'
import type { Reply } from '../../answers/envelope.ts'
import type { Operation } from '../../operation.ts'
import type { ApiParts } from '../../parts.ts'
import { queryParametersNamed } from '../../answers/query-parameters.ts'
import { credentials, currentSession } from '../../schemas/sessions.ts'
import type { ApiServices } from '../../records/services.ts'

/** Whoever has no session yet can not take the room of large bodies. */
const LOG_IN_BODY_BYTES_MAX = 64 * 1024

/** Primary authentication, a file a method. */
export function authenticateOperations(parts: ApiParts, services: ApiServices): Operation[] {
  const password = new PasswordLogIn(parts, services)
  const certificate = new CertificateLogIn(parts, services)
  const externalJwt = new ExternalJwtLogIn(parts, services)
  const byMethod: Readonly<Record<string, (call: RequestContext) => Promise<Reply>>> = {
    password: (call) => password.logIn(call, call.body as LogInBody),
    cert: (call) => certificate.logIn(call, (call.body ?? {}) as LogInBody),
    'ext-jwt': (call) => externalJwt.logIn(call, (call.body ?? {}) as LogInBody),
  }
  return [
    {
      operationId: 'authenticate',
      summary: 'Log in by password, client certificate or token of an external JWT signer',
      tag: 'authentication',
      apis: ['client', 'management'],
      method: 'POST',
      path: '/authenticate',
      permission: 'public',
      query: queryParametersNamed(['method']).map((method) => ({ ...method, isRequired: true })),
      body: { schema: credentials, isRequired: false },
      bodyBytesMax: LOG_IN_BODY_BYTES_MAX,
      success: 200,
      response: { kind: 'detail', schema: currentSession },
      refusals: [400, 401, 413, 415, 429, 503],
      handle: (call) => {
        const method = call.first('method') ?? ''
        const logIn = Object.hasOwn(byMethod, method) ? byMethod[method] : undefined
        if (logIn === undefined) throw new Problem('INVALID_AUTH_METHOD')
        return logIn(call)
      },
    },
  ]
}

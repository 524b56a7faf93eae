import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, SessionDeleteSchema } from '../../../proto/gen/command_pb.ts'
import { detailSchema } from '../../entities/schema.ts'
import { findEntity } from '../../entities/registry.ts'
import { Problem } from '../../lib/problems.ts'
import { pendingFactorHeaders } from '../http/responses/www-authenticate.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import { detailResponse, emptyResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { currentSessionSchema } from './sessions-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { currentSessionView } from './session-view.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { SessionTracker } from '../../auth/sessions/session-tracker.ts'
import type { ApiLimits } from '../limits.ts'
import type { SessionTokenSigner } from '../../auth/sessions/session-token-signer.ts'

interface CurrentOperationsDeps {
  readonly clock: Clock
  readonly state: StateView
  readonly limits: ApiLimits
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly writer: ProposalWriter
}

/** Operations on the caller's own identity and session. */
export function currentIdentityOperations(deps: CurrentOperationsDeps): Operation[] {
  const { state } = deps
  const common = {
    apis: ['client', 'management'],
    permission: 'session',
    success: 200,
  } as const
  return [
    {
      ...common,
      operationId: 'getCurrentAPISession',
      summary: 'Show the current API session',
      permission: 'partial',
      tag: 'currentApiSession',
      method: 'GET',
      path: '/current-api-session',
      response: { kind: 'detail', schema: currentSessionSchema },
      handle: (call) => {
        const caller = requireCaller(call)
        return {
          ...detailResponse(currentSessionView(deps, caller)),
          headers: pendingFactorHeaders(deps, call.credentials, caller),
        }
      },
    },
    {
      ...common,
      operationId: 'deleteCurrentAPISession',
      summary: 'Log out',
      permission: 'partial',
      tag: 'currentApiSession',
      method: 'DELETE',
      path: '/current-api-session',
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call) => {
        const { session } = requireCaller(call)
        await endApiSession(deps.writer, call, session.id)
        deps.sessions.forget(session.id)
        call.caller = null
        return emptyResponse()
      },
    },
    {
      ...common,
      operationId: 'getCurrentIdentity',
      summary: 'Show the current identity',
      tag: 'currentIdentity',
      method: 'GET',
      path: '/current-identity',
      response: {
        kind: 'detail',
        schema: { name: 'identityDetail', schema: detailSchema(findEntity('identity')) },
      },
      handle: (call) => {
        const { identity } = requireCaller(call)
        const links = {
          self: { href: './current-identity' },
          mfa: { href: './current-identity/mfa' },
        }
        return detailResponse({ ...state.detail('identity', identity, identity.id), _links: links })
      },
    },
  ]
}

/** @throws {Problem} NOT_FOUND if the session does not exist, or has ended meanwhile. */
export async function endApiSession(
  writer: ProposalWriter,
  call: RequestContext,
  id: string,
): Promise<void> {
  const payload = toBinary(SessionDeleteSchema, create(SessionDeleteSchema, { id }))
  await writer.write(requestOrigin(call), { kind: CommandKind.SESSION_DELETE, payload })
}

/** The caller of a request whose operation requires a session. */
export function requireCaller(call: RequestContext): Caller {
  if (call.caller === null) throw new Problem('UNAUTHORIZED')
  return call.caller
}

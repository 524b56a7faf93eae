import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { ControllerAdmission, JoinResponse, JoinRequest } from '../../ports/membership.ts'
import { createLogInThrottle, type LogInThrottle } from '../../auth/log-in/log-in-throttle.ts'
import { requestActor, type RequestContext } from '../http/request-context.ts'
import {
  detailResponse,
  emptyResponse,
  listResponse,
  type Reply,
} from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { TICKET_CHARACTERS_MAX } from '../../pki/secrets/ticket.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import {
  newJoinTicketSchema,
  newJoinTicketRequestSchema,
  joinResponseSchema,
  joinRequestSchema,
  joinTicketSchema,
  joinTicketSelectorSchema,
} from './join-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiLimits } from '../limits.ts'

interface JoinOperationsDeps {
  readonly admission: ControllerAdmission
  readonly clock: Clock
  readonly limits: ApiLimits
}

/**
 * Maximum bytes of the body: the longest ticket, plus 32 KiB for the certificate request and the
 * hosts.
 */
const JOIN_BODY_BYTES_MAX = TICKET_CHARACTERS_MAX + 32 * 1024
const HOUR_MS = 60 * 60_000
const BASE64URL = /^[A-Za-z0-9_-]*$/

/**
 * Operations for joining: an administrator creates a ticket, and the new controller presents it as
 * its credential.
 */
export function joinOperations(deps: JoinOperationsDeps): Operation[] {
  const { admission } = deps
  const throttle = createLogInThrottle(deps)
  const common = { tag: 'cluster', apis: ['fabric'], method: 'POST', success: 200 } as const
  return [
    operationWithBody({
      ...common,
      operationId: 'clusterInvite',
      summary: 'Create a join ticket for one controller',
      path: '/cluster/invite',
      needsNoState: true,
      permission: 'admin',
      body: { schema: newJoinTicketRequestSchema, isRequired: false },
      response: { kind: 'detail', schema: newJoinTicketSchema },
      refusals: [409],
      handle: async (call, { isVoter, lifetimeMs }) => {
        return detailResponse(
          await admission.invite(
            { isVoter: isVoter ?? true, lifetimeMs: lifetimeMs ?? HOUR_MS },
            requestActor(call),
          ),
        )
      },
    }),
    ...ticketOperations(deps),
    operationWithBody({
      ...common,
      operationId: 'clusterJoin',
      summary: 'Join the cluster with a ticket (idempotent)',
      path: '/cluster/join',
      permission: 'public',
      bodyBytesMax: JOIN_BODY_BYTES_MAX,
      body: { schema: joinRequestSchema, isRequired: true },
      response: { kind: 'detail', schema: joinResponseSchema },
      refusals: [403, 409],
      handle: (call, body) => join(deps, throttle, call, body),
    }),
  ]
}

/** Operations on tickets, for example to revoke a leaked ticket. */
function ticketOperations({ admission }: JoinOperationsDeps): Operation[] {
  const common = { tag: 'cluster', apis: ['fabric'], permission: 'admin', success: 200 } as const
  return [
    {
      ...common,
      operationId: 'clusterTicketsList',
      summary: 'List unexpired join tickets, newest first; no secrets',
      method: 'GET',
      path: '/cluster/list-tickets',
      needsNoState: true,
      response: { kind: 'list', schema: joinTicketSchema },
      handle: async () => {
        const tickets = await admission.tickets()
        const page = { limit: tickets.length, offset: 0, totalCount: tickets.length }
        return listResponse(tickets, page, [])
      },
    },
    operationWithBody({
      ...common,
      operationId: 'clusterTicketRevoke',
      summary: 'Revoke an unused join ticket',
      method: 'POST',
      path: '/cluster/revoke-ticket',
      needsNoState: true,
      body: { schema: joinTicketSelectorSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404, 409],
      handle: async (call, body) => {
        await admission.revoke(body.id, requestActor(call))
        return emptyResponse(findIgnoredFields(joinTicketSelectorSchema.schema, body))
      },
    }),
  ]
}

/**
 * Admits a controller with a ticket. A refused ticket counts as a failed log-in from the source of
 * the request.
 */
async function join(
  deps: JoinOperationsDeps,
  throttle: LogInThrottle,
  call: RequestContext,
  body: JoinBody,
): Promise<Reply> {
  const request = requestOf(body)
  let refusal: Problem | null = null
  const joined = await throttle.attempt('', call.credentials.address, async () => {
    try {
      return await deps.admission.admit(request)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'TICKET_REFUSED') throw error
      refusal = error
      return null
    }
  })
  if (joined !== null) return detailResponse(wireAnswer(joined))
  throw refusal ?? new Problem('TICKET_REFUSED')
}

type JoinBody = SchemaValue<typeof joinRequestSchema.schema>

function requestOf(body: JoinBody): JoinRequest {
  const { storeId } = body
  if (!BASE64URL.test(storeId)) throw fieldProblem('storeId', 'must be base64url')
  return { ...body, storeId: Uint8Array.from(Buffer.from(storeId, 'base64url')) }
}

/** The join response, with bytes encoded as base64url. */
function wireAnswer(answer: JoinResponse): Record<string, unknown> {
  const { configuration, sharedOptions } = answer
  return {
    ...answer,
    configuration: Buffer.from(configuration).toString('base64url'),
    sharedOptions: sharedOptions ?? [],
  }
}

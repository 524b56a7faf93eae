import { fieldProblem } from '../../lib/problems.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { ChangePlan, MembershipChange, MembershipControl } from '../../ports/membership.ts'
import { requestActor, type RequestContext } from '../http/request-context.ts'
import { envelopeResponse, emptyResponse, type Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  changePlanSchema,
  memberAdditionSchema,
  memberSelectorSchema,
  memberRemovalSchema,
  memberReplacementSchema,
  plannedChangeSchema,
} from './members-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import { responseTimeLimits } from './response-time-limits.ts'

interface MemberOperationsDeps {
  readonly cluster: ClusterView
  readonly membership: MembershipControl
}

type Confirmed = Pick<SchemaValue<typeof memberSelectorSchema.schema>, 'confirmation'>

const common = {
  tag: 'cluster',
  apis: ['fabric'],
  method: 'POST',
  permission: 'admin',
  success: 200,
  needsNoState: true,
  answerMsMax: responseTimeLimits.changeMsMax,
  refusals: [404, 409],
} as const

/**
 * Operations that change the members of the cluster. Those that OpenZiti also has return no
 * content.
 */
export function memberOperations({ cluster, membership }: MemberOperationsDeps): Operation[] {
  return [
    operationWithBody({
      ...common,
      operationId: 'clusterMemberAdd',
      summary: 'Promote or demote a member, by address or id; new controllers join with a ticket',
      path: '/cluster/add-member',
      body: { schema: memberAdditionSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call, body) => {
        const { address, isVoter = true, confirmation } = body
        const id = memberAt(cluster, address)
        await membership.change(
          { verb: isVoter ? 'promote' : 'demote', id },
          confirmation ?? null,
          requestActor(call),
        )
        return emptyResponse(findIgnoredFields(memberAdditionSchema.schema, body))
      },
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterMemberRemove',
      summary: 'Remove a member and revoke its access',
      path: '/cluster/remove-member',
      body: { schema: memberRemovalSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: async (call, body) => {
        const { id, isCompromised = false, confirmation } = body
        await membership.change(
          { verb: 'remove', id, isCompromised },
          confirmation ?? null,
          requestActor(call),
        )
        return emptyResponse(findIgnoredFields(memberRemovalSchema.schema, body))
      },
    }),
    ...changeOperations(membership),
    planOperation(membership),
  ]
}

/** Operations that OpenZiti does not have. Each response describes the change. */
function changeOperations(membership: MembershipControl): Operation[] {
  const changing = async (
    call: RequestContext,
    body: Confirmed,
    { schema }: NamedSchema,
    change: MembershipChange,
  ): Promise<Reply> => {
    const { confirmation = null } = body
    return planAnswer(
      await membership.change(change, confirmation, requestActor(call)),
      findIgnoredFields(schema, body),
    )
  }
  const response = { kind: 'detail', schema: changePlanSchema } as const
  return [
    operationWithBody({
      ...common,
      operationId: 'clusterMemberPromote',
      summary: 'Promote a learner to voter',
      path: '/cluster/promote-member',
      body: { schema: memberSelectorSchema, isRequired: true },
      response,
      handle: (call, body) =>
        changing(call, body, memberSelectorSchema, { verb: 'promote', id: body.id }),
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterMemberDemote',
      summary: 'Demote a voter to learner',
      path: '/cluster/demote-member',
      body: { schema: memberSelectorSchema, isRequired: true },
      response,
      handle: (call, body) =>
        changing(call, body, memberSelectorSchema, { verb: 'demote', id: body.id }),
    }),
    operationWithBody({
      ...common,
      operationId: 'clusterMemberReplace',
      summary: 'Replace a voter by a learner in one change',
      path: '/cluster/replace-member',
      body: { schema: memberReplacementSchema, isRequired: true },
      response,
      handle: (call, body) => {
        const { oldId, newId } = body
        return changing(call, body, memberReplacementSchema, { verb: 'replace', oldId, newId })
      },
    }),
  ]
}

function planOperation(membership: MembershipControl): Operation {
  return operationWithBody({
    ...common,
    operationId: 'clusterPlanChange',
    summary: 'Plan a membership change: its effect and confirmation text; changes nothing',
    path: '/cluster/plan',
    body: { schema: plannedChangeSchema, isRequired: true },
    response: { kind: 'detail', schema: changePlanSchema },
    handle: async (_call, body) =>
      planAnswer(
        await membership.plan(changeOf(body)),
        findIgnoredFields(plannedChangeSchema.schema, body),
      ),
  })
}

function planAnswer(plan: ChangePlan, ignoredFields: readonly string[]): Reply {
  return envelopeResponse(200, plan, ignoredFields.length === 0 ? null : { ignoredFields })
}

function changeOf({
  verb,
  id,
  isCompromised,
  oldId,
  newId,
}: SchemaValue<typeof plannedChangeSchema.schema>): MembershipChange {
  switch (verb) {
    case 'promote':
    case 'demote':
      return { verb, id: required('id', id) }
    case 'remove':
      return { verb, id: required('id', id), isCompromised: isCompromised ?? false }
    case 'replace':
      return { verb, oldId: required('oldId', oldId), newId: required('newId', newId) }
  }
}

function required(field: string, value: string | undefined): string {
  if (value === undefined) throw fieldProblem(field, `${field} is required`)
  return value
}

/**
 * Finds a member by id, by cluster address (`tls:host:port` in OpenZiti), or by one of the API
 * addresses in the list of members.
 */
function memberAt(cluster: ClusterView, text: string): string {
  const address = text.replace(/^tls:/, '')
  const member = cluster
    .members()
    .find((known) => known.address === address || known.id === text || isServedAt(known, text))
  if (member !== undefined) return member.id
  throw fieldProblem(
    'address',
    'no member has this address; a new controller joins with a ticket (flotilla cluster invite on a member, then flotilla cluster join on the new one)',
    text,
  )
}

function isServedAt({ apiAddresses }: MemberView, text: string): boolean {
  return apiAddresses.some(({ url }) => URL.canParse(url) && new URL(url).origin === text)
}

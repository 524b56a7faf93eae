import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  IdentityDisableSchema,
  IdentityEnableSchema,
  ServiceConfigsSchema,
} from '../../../proto/gen/command_pb.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import { emptyResponse, type Reply, singlePagePagination } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  disableParamsSchema,
  serviceConfigSchema,
  serviceConfigsAssignSchema,
} from './identities-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'

interface IdentityOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

const common = {
  tag: 'identities',
  apis: ['management'],
  permission: 'identity.update',
  success: 200,
} as const

/** Operations on identities, in addition to reading and writing their fields. */
export function identityOperations(deps: IdentityOperationsDeps): Operation[] {
  return [...standing(deps), ...serviceConfigs(deps)]
}

function standing({ writer }: IdentityOperationsDeps): Operation[] {
  return [
    operationWithBody({
      ...common,
      operationId: 'disableIdentity',
      summary: 'Disable an identity and end its sessions',
      method: 'POST',
      path: '/identities/{id}/disable',
      body: { schema: disableParamsSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: async (call, { durationMinutes }) => {
        const message = create(IdentityDisableSchema, {
          id: call.param('id'),
          // As in OpenZiti, a negative duration means that the identity stays disabled; the command
          // contains 0 instead.
          durationMinutes: BigInt(Math.max(0, durationMinutes)),
        })
        const payload = toBinary(IdentityDisableSchema, message)
        await writer.write(requestOrigin(call), { kind: CommandKind.IDENTITY_DISABLE, payload })
        return emptyResponse()
      },
    }),
    {
      ...common,
      operationId: 'enableIdentity',
      summary: 'Enable a disabled identity',
      method: 'POST',
      path: '/identities/{id}/enable',
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: async (call) => {
        const message = create(IdentityEnableSchema, { id: call.param('id') })
        const payload = toBinary(IdentityEnableSchema, message)
        await writer.write(requestOrigin(call), { kind: CommandKind.IDENTITY_ENABLE, payload })
        return emptyResponse()
      },
    },
  ]
}

function serviceConfigs(deps: IdentityOperationsDeps): Operation[] {
  const { writer } = deps
  const path = '/identities/{id}/service-configs'
  const write = async (
    call: RequestContext,
    kind:
      | typeof CommandKind.SERVICE_CONFIGS_ASSOCIATE
      | typeof CommandKind.SERVICE_CONFIGS_DISASSOCIATE,
    pairs: SchemaValue<typeof serviceConfigsAssignSchema.schema>,
  ): Promise<Reply> => {
    const named = pairs.map(({ configId, serviceId }) => ({ configId, serviceId }))
    const message = create(ServiceConfigsSchema, { identityId: call.param('id'), pairs: named })
    await writer.write(requestOrigin(call), {
      kind,
      payload: toBinary(ServiceConfigsSchema, message),
    })
    return emptyResponse()
  }
  return [
    {
      ...common,
      operationId: 'listIdentitysServiceConfigs',
      summary: 'List the service configs of an identity',
      permission: 'identity.read',
      method: 'GET',
      path,
      response: { kind: 'list', schema: serviceConfigSchema },
      refusals: [404],
      handle: (call) => listServiceConfigs(deps, call),
    },
    operationWithBody({
      ...common,
      operationId: 'associateIdentitysServiceConfigs',
      summary: 'Associate service configs with an identity',
      method: 'POST',
      path,
      body: { schema: serviceConfigsAssignSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call, pairs) => write(call, CommandKind.SERVICE_CONFIGS_ASSOCIATE, pairs),
    }),
    operationWithBody({
      ...common,
      operationId: 'disassociateIdentitysServiceConfigs',
      summary: 'Remove service configs from an identity',
      method: 'DELETE',
      path,
      body: { schema: serviceConfigsAssignSchema, isRequired: false },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      // A missing body counts as an empty list.
      handle: (call, given) => {
        const pairs = Array.isArray(given) ? given : []
        return write(call, CommandKind.SERVICE_CONFIGS_DISASSOCIATE, pairs)
      },
    }),
  ]
}

/** Returns all config overrides in one page, as OpenZiti does. */
function listServiceConfigs(
  deps: IdentityOperationsDeps,
  call: RequestContext,
): Reply | Promise<Reply> {
  const { lists } = deps
  const { state } = deps
  const id = call.param('id')
  const callerId = requireCaller(call).identity.id
  return deps.reads.found(call, `identity with id ${id}`, () => {
    if (state.get('identity', id) === undefined) return null
    const records = state.findAll('serviceConfig', 'identityId', id)
    return lists.answer(call, {
      records,
      serialize: createRowSerializer((record) => {
        const { config, service } = state.detail('serviceConfig', record, callerId)
        return {
          config: withUrlName(config as JsonObject),
          configId: record.configId,
          service: withUrlName(service as JsonObject),
          serviceId: record.serviceId,
        }
      }),
      pagination: singlePagePagination(records),
      filterableFields: [],
    })
  })
}

function withUrlName(ref: JsonObject): JsonObject {
  return { ...ref, urlName: ref['entity'] ?? '' }
}

import type { NamedSchema } from '../../entities/operations.ts'
import { findEntity } from '../../entities/registry.ts'
import type { ProcessorShare } from '../../lib/bounds/processor-share.ts'
import type { RoleCounts } from '../../fsm/access/role-attributes.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import type { Reply } from '../http/responses/envelope.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import { openObjectSchema } from '../../entities/response-schemas.ts'
import type { KindName } from '../../entities/kind-records.ts'

interface RoleOperationsDeps {
  readonly state: StateView & Pick<StateReader, 'roleCounts'>
  readonly processor: ProcessorShare
  readonly lists: ListResponseSerializer
}

export const roleCountLimits = {
  /**
   * Maximum role attributes in one page; a `limit` that is larger or below 1 is replaced by this
   * value.
   */
  roleRowsMax: 500,
} as const

const roleCount: NamedSchema = {
  name: 'roleCount',
  schema: openObjectSchema({ attribute: { type: 'string' }, count: { type: 'integer' } }),
}

/** Kinds with role attributes, and the permission to read them. */
const kinds = [
  ['identity', 'identity.read', 'Identity'],
  ['service', 'service.read', 'Service'],
  ['edgeRouter', 'router.read', 'EdgeRouter'],
  ['postureCheck', 'posture-check.read', 'PostureCheck'],
] as const satisfies readonly (readonly [string, SessionPermission, string])[]

/**
 * Operations that count records by role attribute, for suggestions while a user types an attribute.
 */
export function roleCountOperations(deps: RoleOperationsDeps): Operation[] {
  return kinds.map(([kind, permission, name]) => {
    const { collection } = findEntity(kind)
    return {
      operationId: `list${name}Roles`,
      summary: `List the role attributes of ${collection} with the number of records that have each`,
      tag: 'roleAttributes',
      apis: ['management'],
      permission,
      method: 'GET',
      path: `/roles/${collection}`,
      query: [
        { name: 'prefix', schema: { type: 'string' }, isRequired: false },
        { name: 'limit', schema: { type: 'integer' }, isRequired: false },
        { name: 'offset', schema: { type: 'integer' }, isRequired: false },
      ],
      success: 200,
      response: { kind: 'list', schema: roleCount },
      isCompressible: true,
      handle: (call) => counted(deps, call, kind),
    } satisfies Operation
  })
}

function counted(
  { state, processor, lists }: RoleOperationsDeps,
  call: RequestContext,
  kind: KindName,
): Reply | Promise<Reply> {
  const { roleRowsMax: max } = roleCountLimits
  const asked = Number(call.first('limit') ?? 10)
  const limit = asked < 1 ? max : Math.min(asked, max)
  const offset = Math.max(0, Number(call.first('offset') ?? 0))
  // Removes the `#` that policies write before a role attribute.
  const prefix = (call.first('prefix') ?? '').replace(/^#/, '')
  const steps = state.roleCounts(kind, { prefix, limit, offset })
  const answer = ({ rows, totalCount }: RoleCounts): Reply | Promise<Reply> =>
    lists.answer(call, {
      records: rows,
      serialize: createRowSerializer((row) => row),
      pagination: { limit, offset, totalCount },
      filterableFields: [],
    })
  const found = processor.finish(call.sharer, steps)
  return found instanceof Promise ? found.then(answer) : answer(found)
}

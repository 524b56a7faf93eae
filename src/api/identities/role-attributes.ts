import type { KindName } from '../../entities/kind-records.ts'
import { roleAttributeFields } from '../../fsm/access/role-attributes.ts'
import { CallerReadPermissions } from '../access/caller-read-permissions.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import type { Permission } from '../../auth/principal/permissions.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { roleAttributeSchema, roleAttributeUsageSchema } from '../schemas/access.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'

interface RoleAttributeOperationsDeps {
  readonly state: StateView & Pick<StateReader, 'roleAttributes' | 'roleAttributeUsage'>
  readonly lists: ListResponseSerializer
}

interface Subject {
  readonly entity: KindName
  /** Name of the kind in the path. */
  readonly path: string
  /** Name of the kind in operation IDs. */
  readonly name: string
  readonly permission: Permission
}

const subjects: readonly Subject[] = [
  {
    entity: 'edgeRouter',
    path: 'edge-router',
    name: 'EdgeRouter',
    permission: 'router.read',
  },
  { entity: 'identity', path: 'identity', name: 'Identity', permission: 'identity.read' },
  {
    entity: 'postureCheck',
    path: 'posture-check',
    name: 'PostureCheck',
    permission: 'posture-check.read',
  },
  { entity: 'service', path: 'service', name: 'Service', permission: 'service.read' },
]

/** Operations that list the role attributes in use, as suggestions for policies. */
export function roleAttributeOperations({
  state,
  lists,
}: RoleAttributeOperationsDeps): Operation[] {
  return subjects.flatMap(({ entity, path, name, permission }) => {
    const common = {
      tag: 'roleAttributes',
      apis: ['management'],
      permission,
      method: 'GET',
      success: 200,
      isCompressible: true,
    } as const
    const words = path.replace('-', ' ')
    return [
      {
        ...common,
        operationId: `list${name}RoleAttributes`,
        summary: `List the role attributes of ${words}`,
        path: `/${path}-role-attributes`,
        query: listQueryParameters,
        response: { kind: 'list', schema: roleAttributeSchema },
        handle: (call: RequestContext) => {
          const { attributes, ...pagination } = state.roleAttributes(entity, readListQuery(call))
          return lists.answer(call, {
            records: attributes,
            serialize: createRowSerializer((attribute) => attribute),
            pagination,
            filterableFields: roleAttributeFields,
          })
        },
      },
      {
        ...common,
        operationId: `list${name}RoleAttributeUsage`,
        summary: `List the role attributes of ${words} with their members and policies`,
        path: `/${path}-role-attribute-usage`,
        query: [
          ...listQueryParameters,
          { name: 'withIds', schema: { type: 'boolean' }, isRequired: false },
        ],
        response: { kind: 'list', schema: roleAttributeUsageSchema },
        handle: (call: RequestContext) => {
          const withIds = call.first('withIds') === 'true'
          const permissions = new CallerReadPermissions(call)
          const { rows, ...pagination } = state.roleAttributeUsage(
            entity,
            readListQuery(call),
            (policies) => permissions.mayList(policies),
          )
          return lists.answer(call, {
            records: rows,
            serialize: createRowSerializer(({ roleAttribute: name, usage }) => ({
              roleAttribute: name,
              usage: Object.fromEntries(
                Object.entries(usage).map(([source, ids]) => [
                  source,
                  { count: ids.length, ids: withIds ? ids : null },
                ]),
              ),
            })),
            pagination,
            filterableFields: roleAttributeFields,
          })
        },
      },
    ] satisfies Operation[]
  })
}

import { assert } from '../lib/assert.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { EntityApi, Entity, OperationShape, SubList } from './define-entity.ts'
import { findEntity } from './registry.ts'
import {
  createdSchema,
  withOptionalMembers,
  detailSchema,
  emptySchema,
  requestSchema,
  type RequestSchema,
} from './schema.ts'

export interface NamedSchema<S extends JsonObject = JsonObject> {
  /**
   * Name of the schema in OpenAPI documents, for example `serviceCreate`, `serviceUpdate`,
   * `servicePatch` or `serviceDetail`.
   */
  readonly name: string
  readonly schema: S
}

export interface EntityOperation {
  readonly api: EntityApi
  readonly entity: Entity
  readonly operationId: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path below the API's base: `/services/{id}`. */
  readonly path: string
  readonly shape: OperationShape | 'subList'
  /** For a sub-list: its key, its rule and the kind of its rows; null for other operations. */
  readonly list: { readonly key: string; readonly rule: SubList; readonly of: Entity } | null
  /**
   * `session`: any fully authenticated session. `admin`: an administrator. Otherwise
   * `<kind>.<action>`.
   */
  readonly permission: string
  readonly request: NamedSchema<RequestSchema> | null
  /** Schema of `data`, or of each row of `data` for lists. */
  readonly response: NamedSchema
  readonly success: 200 | 201
  /** HTTP statuses of refusals, ascending. */
  readonly refusals: readonly number[]
  /** Names of the query parameters; `roleFilter` may be repeated. */
  readonly query: readonly string[]
}

type Method = EntityOperation['method']
const listQuery = ['limit', 'offset', 'filter', 'sort']
const created: NamedSchema = { name: 'createResult', schema: createdSchema }
const nothing: NamedSchema = { name: 'empty', schema: emptySchema }

interface ShapeRule {
  readonly method: Method
  readonly isById: boolean
  readonly verb: string
  readonly refusals: readonly number[]
}
const shapes: Readonly<Record<OperationShape, ShapeRule>> = {
  list: { method: 'GET', isById: false, verb: 'list', refusals: [400, 401, 429, 503] },
  create: {
    method: 'POST',
    isById: false,
    verb: 'create',
    refusals: [400, 401, 404, 409, 413, 429, 503],
  },
  detail: { method: 'GET', isById: true, verb: 'detail', refusals: [400, 401, 404, 429, 503] },
  replace: {
    method: 'PUT',
    isById: true,
    verb: 'update',
    refusals: [400, 401, 404, 409, 413, 429, 503],
  },
  patch: {
    method: 'PATCH',
    isById: true,
    verb: 'patch',
    refusals: [400, 401, 404, 409, 413, 429, 503],
  },
  delete: {
    method: 'DELETE',
    isById: true,
    verb: 'delete',
    refusals: [400, 401, 404, 409, 429, 503],
  },
}
const shapeOrder: readonly OperationShape[] = [
  'list',
  'create',
  'detail',
  'replace',
  'patch',
  'delete',
]

/** Capitalizes the first letter: `servicePolicies` → `ServicePolicies`. */
function pascal(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

const details = new Map<string, NamedSchema>()
function detailOf(entity: Entity): NamedSchema {
  let detail = details.get(entity.name)
  if (detail === undefined) {
    detail = { name: `${entity.name}Detail`, schema: detailSchema(entity) }
    details.set(entity.name, detail)
  }
  return detail
}

function requestOf(entity: Entity, shape: OperationShape): EntityOperation['request'] {
  switch (shape) {
    case 'create':
      return { name: `${entity.name}Create`, schema: requestSchema(entity, 'create') }
    case 'replace':
      return { name: `${entity.name}Update`, schema: requestSchema(entity, 'replace') }
    case 'patch':
      return { name: `${entity.name}Patch`, schema: requestSchema(entity, 'patch') }
    case 'list':
    case 'detail':
    case 'delete':
      return null
  }
}

function responseOf(entity: Entity, shape: OperationShape): NamedSchema {
  if (shape === 'create') return created
  return shape === 'list' || shape === 'detail' ? detailOf(entity) : nothing
}

function crudOperation(
  entity: Entity,
  api: EntityApi,
  shape: OperationShape,
  permission: string,
): EntityOperation {
  const { method, isById, verb, refusals } = shapes[shape]
  const subject = pascal(shape === 'list' ? entity.plural : entity.name)
  const hasRoleFilter = shape === 'list' && entity.hasRoleFilter
  const listParameters = shape === 'list' ? (entity.listParameters[api] ?? []) : []
  return {
    api,
    entity,
    operationId: entity.operationIds[shape] ?? `${verb}${subject}`,
    method,
    path: `/${entity.collection}${isById ? '/{id}' : ''}`,
    shape,
    list: null,
    permission,
    request: requestOf(entity, shape),
    response: responseOf(entity, shape),
    success: shape === 'create' ? 201 : 200,
    refusals: [
      ...new Set([
        ...refusals,
        ...(entity.refusals[shape] ?? []),
        // The operation may answer 404, because the identity in `asIdentity` may not exist.
        ...(listParameters.includes('asIdentity') ? [404] : []),
      ]),
    ].sort((a, b) => a - b),
    query:
      shape === 'list'
        ? [
            ...listQuery,
            ...(hasRoleFilter ? ['roleFilter', 'roleSemantic'] : []),
            ...listParameters,
          ]
        : [],
  }
}

/** Schema of each row of a sub-list. */
function rowOf(entity: Entity, of: Entity, { declaredAs }: SubList): NamedSchema {
  const detail = detailOf(of)
  if (declaredAs === null) return detail
  const name = `${entity.name}${pascal(of.name)}Detail`
  return {
    name,
    schema: withOptionalMembers(detail.schema, detailSchema(ofContract(findEntity(declaredAs)))),
  }
}

/** The kind without the fields that OpenZiti does not have; later feature levels added them. */
function ofContract(entity: Entity): Entity {
  const fields = Object.entries(entity.fields).filter(([, { since }]) => since === 1)
  return { ...entity, fields: Object.fromEntries(fields) }
}

function subListOperation(entity: Entity, key: string, rule: SubList): EntityOperation {
  const of = findEntity(rule.of)
  // The caller needs only the permission to list the listed kind, not one for the parent's kind.
  const permission = rule.api === 'client' ? 'session' : of.operations[rule.api]?.list
  assert(permission !== undefined, `a kind shown in a sub-list can be listed: ${of.name}`)
  return {
    api: rule.api,
    entity,
    operationId: rule.operationId ?? `list${pascal(entity.name)}${pascal(of.plural)}`,
    method: 'GET',
    path: `/${entity.collection}/{id}/${rule.path}`,
    shape: 'subList',
    list: { key, rule, of },
    permission,
    request: null,
    response: rowOf(entity, of, rule),
    success: 200,
    refusals: [400, 401, 404, 429, 503],
    query: rule.through === 'access' ? [...listQuery, 'policyType'] : listQuery,
  }
}

/**
 * All operations of a descriptor, in a fixed order. Routes and OpenAPI documents are both generated
 * from them.
 */
export function entityOperations(entity: Entity): readonly EntityOperation[] {
  const operations: EntityOperation[] = []
  for (const api of ['client', 'management', 'fabric'] as const) {
    for (const shape of shapeOrder) {
      const permission = entity.operations[api]?.[shape]
      if (permission !== undefined) operations.push(crudOperation(entity, api, shape, permission))
    }
  }
  for (const [key, rule] of Object.entries(entity.lists)) {
    operations.push(subListOperation(entity, key, rule))
  }
  return operations
}

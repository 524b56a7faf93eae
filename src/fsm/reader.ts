import type { ApiSession } from '../entities/api-session.ts'
import type { Entity, SubList } from '../entities/define.ts'
import { entitiesByName, entityNamed } from '../entities/registry.ts'
import { assert } from '../lib/assert.ts'
import type { JsonObject } from '../lib/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { fieldProblem } from '../lib/problems.ts'
import { noConfigTypes } from '../ports/state-view.ts'
import type {
  AccessBetween,
  ConfigTypesShown,
  DialBind,
  ListQuery,
  ListResult,
  PostureFailureView,
  RoleAttributeUsage,
  RoleAttributes,
} from '../ports/state-view.ts'
import { lastChangeAt } from './access/marks.ts'
import { postureFailures } from './access/posture.ts'
import {
  commonRouters,
  linkedThrough,
  routersOfIdentity,
  routersOfService,
} from './access/routers.ts'
import { listRoleAttributeUsage, listRoleAttributes } from './access/role-attributes.ts'
import { detailOf, entityRef, permissionsOf } from './detail.ts'
import { Lister } from './query/list.ts'
import type { Links } from './query/evaluate.ts'
import { identityGrants, linkingPolicies, members, policiesMatching, scopeOf } from './roles.ts'
import type { Grants } from './roles.ts'
import { SetScope, noIds } from './sorted-ids.ts'
import type { IdScope } from './sorted-ids.ts'
import type { State, Table } from './state.ts'

function listRule(entity: Entity, key: string): SubList {
  const rule = Object.hasOwn(entity.lists, key) ? entity.lists[key] : undefined
  assert(rule !== undefined, `${entity.name} has a sub-list ${key}`)
  return rule
}

function narrowed(grants: Grants, policyType: string | undefined): IdScope {
  const lower = (policyType ?? '').toLowerCase()
  if (lower === '') return grants.any
  if (lower === 'bind') return grants.bind
  if (lower === 'dial') return grants.dial
  throw fieldProblem('policyType', 'must be dial or bind', policyType?.slice(0, 128))
}

/** Reads of one state: lists, sub-lists, what policies grant, details. A restored snapshot gets a reader of its own. */
export class Reader {
  readonly #state: State
  readonly #clock: Clock
  readonly #lister: Lister

  constructor(state: State, clock: Clock) {
    this.#state = state
    this.#clock = clock
    const links: Links = {
      ids: (entity, key, record) => [...this.#linked(entity, listRule(entity, key), record, {})],
      target: (entity, key) => entityNamed(listRule(entity, key).of),
      record: (entity, id) => state.get(entity.name, id),
    }
    this.#lister = new Lister(links)
  }

  #table(entity: string): Table {
    return this.#state.table(entity)
  }

  find(entity: string, field: string, value: string): EntityRecord | undefined {
    const table = this.#table(entity)
    assert(table.indexes.isUnique(field), `${entity}.${field} is unique`)
    const id = table.indexes.owner(field, value)
    return id === undefined ? undefined : this.#state.get(entity, id)
  }

  findAll<R extends EntityRecord>(entity: string, field: string, value: string): R[] {
    const table = this.#table(entity)
    assert(table.indexes.isIndexed(field), `${entity}.${field} is indexed`)
    const found: R[] = []
    for (const id of table.indexes.ids(field, value)) {
      const record = this.#state.get<R>(entity, id)
      if (record !== undefined) found.push(record)
    }
    return found
  }

  count(entity: string): number {
    const table = this.#state.tables.get(entity)
    return table === undefined ? 0 : (scopeOf(table, entityNamed(entity))?.size ?? table.rows.size)
  }

  list(entity: string, query: ListQuery): ListResult {
    const table = this.#table(entity)
    const kind = entityNamed(entity)
    return this.#lister.list(kind, table, query, scopeOf(table, kind))
  }

  subList(entity: Entity, id: string, key: string, query: ListQuery): ListResult | null {
    const rule = listRule(entity, key)
    const parent = this.#state.get(entity.name, id)
    if (parent === undefined && rule.unknownParent === 'notFound') return null
    const linked = parent === undefined ? noIds : this.#linked(entity, rule, parent, query)
    return this.#lister.list(entityNamed(rule.of), this.#table(rule.of), query, linked)
  }

  #linked(entity: Entity, rule: SubList, parent: EntityRecord, query: ListQuery): IdScope {
    const { of, by } = rule
    switch (rule.through) {
      case 'roles': {
        const roles = (by === null ? [] : parent[by]) as readonly string[]
        return members(this.#state, of, [{ roles, semantic: String(parent['semantic']) }])
      }
      case 'policies': {
        const policies = policiesMatching<EntityRecord & { readonly semantic: string }>(
          this.#table(of),
          by ?? '',
          parent,
        )
        return new SetScope(new Set(policies.map((policy) => policy.id)))
      }
      case 'named':
        return new SetScope(new Set((by === null ? [] : parent[by]) as readonly string[]))
      case 'naming':
        return this.#table(of).indexes.ids(by ?? '', parent.id)
      case 'access': {
        const grants =
          of === 'service'
            ? this.#state.access.grantsOf(parent)
            : identityGrants(this.#state, parent)
        return narrowed(grants, query.policyType)
      }
      case 'policyLinks':
        return linkedThrough(this.#state, by ?? '', entity.name, parent, of)
    }
  }

  permissions(identityId: string, serviceId: string): readonly DialBind[] {
    const identity = this.#state.get('identity', identityId)
    const service = this.#state.get('service', serviceId)
    if (identity === undefined || service === undefined) return []
    return permissionsOf(this.#state.access.bitsOf(identity, service))
  }

  accessibleServices(identityId: string, query: ListQuery): ListResult {
    const identity = this.#state.get('identity', identityId)
    const scope = identity === undefined ? noIds : this.#state.access.grantsOf(identity).any
    return this.#lister.list(entityNamed('service'), this.#table('service'), query, scope)
  }

  listNaming(entity: string, field: string, value: string, query: ListQuery): ListResult {
    const table = this.#table(entity)
    assert(table.indexes.isIndexed(field), `${entity}.${field} is indexed`)
    return this.#lister.list(entityNamed(entity), table, query, table.indexes.ids(field, value))
  }

  roleAttributes(entity: string, query: ListQuery): RoleAttributes {
    return listRoleAttributes(this.#state, entityNamed(entity), query)
  }

  roleAttributeUsage(entity: string, query: ListQuery): RoleAttributeUsage {
    return listRoleAttributeUsage(this.#state, entityNamed(entity), query)
  }

  ref(entity: string, id: string): JsonObject | null {
    return entityRef(this.#state, entity, id)
  }

  lastChangeAt(apiSessionId: string): number | null {
    const session = this.#state.get<ApiSession>('apiSession', apiSessionId)
    if (session === undefined) return null
    const { classes } = this.#state.access
    return lastChangeAt(this.#state, session, classes.of(session.identityId))
  }

  accessBetween(identityId: string, serviceId: string): AccessBetween | null {
    const state = this.#state
    const identity = state.get('identity', identityId)
    const service = state.get('service', serviceId)
    if (identity === undefined || service === undefined) return null
    return {
      permissions: permissionsOf(state.access.bitsOf(identity, service)),
      policies: linkingPolicies(state, identity, service).map(({ id, type }) => ({ id, type })),
      identityRouterCount: routersOfIdentity(state, identity).size,
      serviceRouterCount: routersOfService(state, service).size,
      commonRouters: [...commonRouters(state, identity, service)].flatMap(
        (id) => state.get('edgeRouter', id) ?? [],
      ),
    }
  }

  postureFailures(
    identityId: string,
    serviceId: string,
    type: DialBind,
    passing: ReadonlySet<string>,
  ): readonly PostureFailureView[] {
    const state = this.#state
    const identity = state.get('identity', identityId)
    const service = state.get('service', serviceId)
    if (identity === undefined || service === undefined) return []
    const policies = linkingPolicies(state, identity, service)
    const granting = policies.filter((policy) => policy.type === type)
    return postureFailures(state, granting, passing).map(({ policyId, checks }) => ({
      policyId,
      checks: checks.map(({ id, typeId }) => ({ id, typeId })),
    }))
  }

  detail(
    entity: string,
    record: EntityRecord,
    callerId: string,
    configTypes: ConfigTypesShown = noConfigTypes,
  ): JsonObject {
    assert(entitiesByName.has(entity), `there is a descriptor named ${entity}`)
    return detailOf(entity, record, {
      state: this.#state,
      callerId,
      configTypes,
      nowMs: this.#clock.nowMs(),
    })
  }

  idleSessions(
    beforeMs: number,
    max: number,
  ): { readonly id: string; readonly lastActivityMs: number }[] {
    const idle: { id: string; lastActivityMs: number }[] = []
    for (const { record } of this.#table('apiSession').rows.values()) {
      const lastActivityMs = (record as ApiSession).lastActivityAt ?? 0
      if (lastActivityMs >= beforeMs) continue
      idle.push({ id: record.id, lastActivityMs })
      if (idle.length >= max) break
    }
    return idle
  }
}

import type { ApiSession } from '../entities/api-session.ts'
import type { Entity, SubList } from '../entities/define.ts'
import { entitiesByName, entityNamed } from '../entities/registry.ts'
import { assert } from '../lib/assert.ts'
import type { JsonObject } from '../lib/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { fieldProblem } from '../lib/problems.ts'
import { noConfigTypes } from '../ports/state-view.ts'
import type { ConfigTypesShown, DialBind, ListQuery, ListResult } from '../ports/state-view.ts'
import { shownToNonAdmin, withoutAdminSecrets } from './admin-secrets.ts'
import { detailOf, permissionsOf } from './detail.ts'
import { GrantCache } from './grant-cache.ts'
import { Lister } from './query/list.ts'
import type { Links } from './query/evaluate.ts'
import { bitsOf, identityGrants, members, policiesMatching, scopeOf } from './roles.ts'
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
  readonly #grants: GrantCache
  readonly #lister: Lister

  constructor(state: State, clock: Clock) {
    this.#state = state
    this.#clock = clock
    this.#grants = new GrantCache(state)
    const links: Links = {
      ids: (entity, key, record) => [...this.#linked(listRule(entity, key), record, {})],
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
    return this.#lister.list(kind, table, query, this.#shown(kind, scopeOf(table, kind), query))
  }

  subList(entity: Entity, id: string, key: string, query: ListQuery): ListResult | null {
    const rule = listRule(entity, key)
    const parent = this.#state.get(entity.name, id)
    if (parent === undefined && rule.unknownParent === 'notFound') return null
    const linked = parent === undefined ? noIds : this.#linked(rule, parent, query)
    const of = entityNamed(rule.of)
    return this.#lister.list(of, this.#table(rule.of), query, this.#shown(of, linked, query))
  }

  #shown({ name }: Entity, scope: IdScope | null, query: ListQuery): IdScope | null {
    if (query.isForNonAdmin !== true) return scope
    return withoutAdminSecrets(this.#state, this.#table(name), name, scope)
  }

  #linked(rule: SubList, parent: EntityRecord, query: ListQuery): IdScope {
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
          of === 'service' ? this.#grants.of(parent) : identityGrants(this.#state, parent)
        return narrowed(grants, query.policyType)
      }
    }
  }

  permissions(identityId: string, serviceId: string): readonly DialBind[] {
    const identity = this.#state.get('identity', identityId)
    if (identity === undefined) return []
    return permissionsOf(bitsOf(this.#grants.of(identity), serviceId))
  }

  accessibleServices(identityId: string, query: ListQuery): ListResult {
    const identity = this.#state.get('identity', identityId)
    const scope = identity === undefined ? noIds : this.#grants.of(identity).any
    return this.#lister.list(entityNamed('service'), this.#table('service'), query, scope)
  }

  detail(
    entity: string,
    record: EntityRecord,
    callerId: string,
    configTypes: ConfigTypesShown = noConfigTypes,
  ): JsonObject {
    assert(entitiesByName.has(entity), `there is a descriptor named ${entity}`)
    const detail = detailOf(entity, record, {
      state: this.#state,
      grants: this.#grants,
      callerId,
      configTypes,
      nowMs: this.#clock.nowMs(),
    })
    const isForAdmin = this.#state.get('identity', callerId)?.['isAdmin'] === true
    return isForAdmin ? detail : shownToNonAdmin(entity, record, detail)
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

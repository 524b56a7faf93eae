import type { ApiSession } from '../entities/kinds/api-session.ts'
import type { Identity } from '../entities/kinds/identity.ts'
import type { Service } from '../entities/kinds/service.ts'
import type { Session } from '../entities/kinds/session.ts'
import type { Entity, SubList } from '../entities/define-entity.ts'
import { entitiesByName, findEntity } from '../entities/registry.ts'
import type { FieldName, KindName, RecordOf } from '../entities/kind-records.ts'
import { assert, AssertionError } from '../lib/assert.ts'
import type { LiveFilterField } from '../entities/fields.ts'
import { isDisabled } from '../lib/is-disabled.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { fieldProblem } from '../lib/problems.ts'
import type { AccessPreview, PreviewCaller, PreviewedWrite } from './access/access-difference.ts'
import { noRouterStatuses, type RouterStatuses } from '../ports/router-status.ts'
import {
  type IdentityServiceAccess,
  type PolicyWithPostureChecks,
  type DialBind,
  type HistoryQuery,
  type LiveIdSet,
  type SteppedListing,
  type ListQuery,
  type ListResult,
  type ListSource,
  type RouterIdentities,
  type ServiceDetailScope,
  noServiceDetailScope,
  type ValidityRecords,
  type StateView,
} from '../ports/state-view.ts'
import { type AccessExplanation, explainAccess } from './access/explanation.ts'
import { listHistory } from './audit-query.ts'
import { previewAccess } from './access/preview.ts'
import { servicesChangedAtMs } from './access/client-view-marker.ts'
import { toPolicyWithPostureChecks, policiesForIdentity } from './access/policy-posture-checks.ts'
import {
  commonRouters,
  identitiesForRouter,
  recordsLinkedByPolicies,
  routersForIdentity,
  routersForService,
} from './access/routers.ts'
import {
  countRoles,
  listRoleAttributeUsage,
  listRoleAttributes,
  type RoleAttributes,
  type RoleAttributeUsage,
  type RoleCountQuery,
  type RoleCounts,
} from './access/role-attributes.ts'
import { IntegrityScan } from './cluster/integrity-scan.ts'
import {
  hasSecretsHiddenFromNonAdmin,
  detailWithoutAdminSecrets,
  scopeWithoutAdminSecrets,
} from './apply/admin-secrets.ts'
import {
  type DetailContext,
  buildRecordDetail,
  DetailSerializer,
  entityReference,
  dialBindNames,
} from './detail.ts'
import type { Router } from '../entities/kinds/router.ts'
import { loggedSessionUses, type SessionUses } from '../ports/session-uses.ts'
import { passwordLockPeriod } from './apply/authentication.ts'
import { lastSeenMs, routerPresenceMs } from './records/last-seen.ts'
import { readLiveRouterField } from './records/live-router-field.ts'
import { nextAccessExpiryMs } from './expiry/expire-access.ts'
import { rulesForKind } from './kind-rules.ts'
import { RecordLister, runListing } from './query/list.ts'
import type { QueryLinks } from './query/evaluate.ts'
import {
  type PolicyGrants,
  identitiesGrantedService,
  linkingPolicies,
  matchesRoles,
  activePoliciesSelecting,
  type Policy,
  idsSelectedByRoles,
  idsWithinScope,
} from './records/roles.ts'
import { type IdScope, emptyIds, SetScope } from './records/sorted-ids.ts'
import type { Records, Table } from './records/table.ts'
import type { ClusterState } from './access/cluster-state.ts'

function listRule(entity: Entity<string>, key: string): SubList {
  const rule = Object.hasOwn(entity.lists, key) ? entity.lists[key] : undefined
  if (rule === undefined) throw new AssertionError(`${entity.name} has a sub-list ${key}`)
  return rule
}

function narrowed(grants: PolicyGrants, policyType: string | undefined): IdScope {
  const lower = (policyType ?? '').toLowerCase()
  if (lower === '') return grants.any
  if (lower === 'bind') return grants.bind
  if (lower === 'dial') return grants.dial
  throw fieldProblem('policyType', 'must be dial or bind', policyType?.slice(0, 128))
}

type Reads = Omit<StateView, 'appliedIndex' | 'waitForApplied' | 'listAudit'>

/**
 * Reads from the current state: records, lists, sub-lists, details, and the access that policies
 * grant.
 */
export class StateReader implements Reads {
  /** The current state. When a snapshot is restored, its state replaces this object. */
  protected state: ClusterState
  readonly #clock: Clock
  readonly #routers: () => RouterStatuses
  readonly #details = new DetailSerializer()
  readonly #lister: RecordLister
  #uses = loggedSessionUses

  /** @param routers returns the status of the connected routers; called at each use. */
  constructor(
    state: ClusterState,
    clock: Clock,
    routers: () => RouterStatuses = () => noRouterStatuses,
  ) {
    this.state = state
    this.#routers = routers
    this.#clock = clock
    const links: QueryLinks = {
      ids: (entity, key, record) => this.#linked(entity, listRule(entity, key), record, {}),
      holds: (entity, key, record, id) => this.#holds(entity, listRule(entity, key), record, id),
      table: (kind) => this.state.records.get(kind) ?? null,
      live: (record, fact) => this.#live(record, fact),
    }
    this.#lister = new RecordLister(links)
  }

  showUses(uses: SessionUses): void {
    this.#uses = uses
  }

  #live(record: EntityRecord, fact: LiveFilterField): Json | undefined {
    switch (fact) {
      case 'isConnected':
        return this.#routers().hasConnection(record.id) === true
      case 'hasApiSession':
        return this.state.table('apiSession').indexes.ids('identityId', record.id).size > 0
      case 'isLocked':
        return passwordLockPeriod(this.state, record as Identity, this.#clock.nowMs()) !== null
      case 'lastSeenAt':
        return lastSeenMs(this.state, record as Identity, this.#uses) ?? undefined
      case 'onlineSince':
      case 'offlineSince': {
        const presence = this.#routers().presenceOf(record.id)
        return routerPresenceMs(record as Router, presence, fact) ?? undefined
      }
      case 'isDisabled':
        return isDisabled(record as Identity, this.#clock.nowMs())
      default:
        return readLiveRouterField(this.#routers().of(record.id), fact) ?? undefined
    }
  }

  get logTimeMs(): number {
    return this.state.logTimeMs
  }

  get featureLevel(): number {
    return this.state.featureLevel
  }

  get clusterId(): string {
    return this.state.clusterId
  }

  get requestIds(): number {
    return this.state.requests.size
  }

  get<K extends KindName>(kind: K, id: string): RecordOf<K> | undefined {
    return this.state.get(kind, id)
  }

  get recordsNow(): ValidityRecords {
    return this.state
  }

  #table<K extends KindName>(kind: K): Table<RecordOf<K>> {
    return this.state.table(kind)
  }

  #records(entity: KindName): Records {
    const records = this.state.records.get(entity)
    if (records === undefined) throw new AssertionError(`there are records of ${entity}`)
    return records
  }

  find<K extends KindName>(kind: K, field: FieldName<K>, value: string): RecordOf<K> | undefined {
    const table = this.#table(kind)
    if (!table.indexes.isUnique(field)) throw new AssertionError(`${kind}.${field} is unique`)
    const id = table.indexes.owner(field, value)
    return id === undefined ? undefined : this.state.get(kind, id)
  }

  findAll<K extends KindName>(kind: K, field: FieldName<K>, value: string): RecordOf<K>[] {
    const table = this.#table(kind)
    if (!table.indexes.isIndexed(field)) throw new AssertionError(`${kind}.${field} is indexed`)
    const found: RecordOf<K>[] = []
    for (const id of table.indexes.ids(field, value)) {
      const record = this.state.get(kind, id)
      if (record !== undefined) found.push(record)
    }
    return found
  }

  /** Number of records with this value in an indexed field. */
  countWith<K extends KindName>(kind: K, field: FieldName<K>, value: string): number {
    const { indexes } = this.#table(kind)
    if (!indexes.isIndexed(field)) throw new AssertionError(`${kind}.${field} is indexed`)
    return indexes.ids(field, value).size
  }

  count(entity: KindName): number {
    const table = this.state.tables.get(entity)
    return table === undefined
      ? 0
      : (idsWithinScope(table, findEntity(entity))?.size ?? table.rows.size)
  }

  listing(source: ListSource, query: ListQuery): SteppedListing | null {
    switch (source.of) {
      case 'kind': {
        const kind = findEntity(source.entity)
        const scope = idsWithinScope(this.#table(source.entity), kind)
        return this.#listingOf(source.entity, query, this.#shown(kind, scope, query))
      }
      case 'subList':
        return this.#subListing(findEntity(source.entity), source.id, source.key, query)
      case 'naming': {
        const { entity, field, value } = source
        const table = this.#table(entity)
        if (!table.indexes.isIndexed(field))
          throw new AssertionError(`${entity}.${field} is indexed`)
        return this.#listingOf(entity, query, table.indexes.ids(field, value))
      }
      case 'services': {
        const identity = this.state.get('identity', source.identityId)
        const scope = identity === undefined ? emptyIds : this.state.access.grantsOf(identity).any
        return this.#listingOf('service', query, scope)
      }
    }
  }

  list<K extends KindName>(kind: K, query: ListQuery): ListResult<RecordOf<K>> {
    return this.#whole({ of: 'kind', entity: kind }, query)
  }

  subList(entity: KindName, id: string, key: string, query: ListQuery): ListResult | null {
    const listing = this.#subListing(findEntity(entity), id, key, query)
    return listing === null ? null : runListing(listing)
  }

  #subListing(entity: Entity, id: string, key: string, query: ListQuery): SteppedListing | null {
    const rule = listRule(entity, key)
    const parent = this.state.get(entity.name, id)
    if (parent === undefined && rule.unknownParent === 'notFound') return null
    const linked = parent === undefined ? emptyIds : this.#linked(entity, rule, parent, query)
    return this.#listingOf(rule.of, query, this.#shown(findEntity(rule.of), linked, query))
  }

  #listingOf(entity: KindName, query: ListQuery, scope: IdScope | null): SteppedListing {
    return this.#lister.listing(this.#records(entity), query, scope)
  }

  #whole<R extends EntityRecord>(source: ListSource, query: ListQuery): ListResult<R> {
    const listing = this.listing(source, query)
    assert(listing !== null, 'only a sub-list may have no parent')
    return runListing(listing) as ListResult<R>
  }

  #shown({ name }: Entity, scope: IdScope | null, query: ListQuery): IdScope | null {
    if (query.isForNonAdmin !== true) return scope
    return scopeWithoutAdminSecrets(this.state, this.#table(name), name, scope)
  }

  #linked(entity: Entity<string>, rule: SubList, parent: EntityRecord, query: ListQuery): IdScope {
    const { of, by } = rule
    switch (rule.through) {
      case 'roles': {
        const roles = (by === null ? [] : parent[by]) as readonly string[]
        return idsSelectedByRoles(this.state, of, [{ roles, semantic: String(parent['semantic']) }])
      }
      case 'policies': {
        const policies = activePoliciesSelecting(this.#table(of) as Table<Policy>, by ?? '', parent)
        return new SetScope(new Set(policies.map((policy) => policy.id)))
      }
      case 'named':
        return new SetScope(new Set((by === null ? [] : parent[by]) as readonly string[]))
      case 'naming':
        return this.#table(of).indexes.ids(by ?? '', parent.id)
      case 'access': {
        const grants =
          of === 'service'
            ? this.state.access.grantsOf(parent)
            : identitiesGrantedService(this.state, parent)
        return narrowed(grants, query.policyType)
      }
      case 'policyLinks':
        return recordsLinkedByPolicies(
          this.state,
          findEntity(by ?? '').name,
          entity.name,
          parent,
          of,
        )
    }
  }

  /**
   * Whether a sub-list contains the id. In a sub-list that a role list defines, the answer needs a
   * test of only that one record.
   */
  #holds(entity: Entity<string>, rule: SubList, parent: EntityRecord, id: string): boolean {
    if (rule.through !== 'roles') return this.#linked(entity, rule, parent, {}).has(id)
    const record = this.state.get(rule.of, id)
    const roles = (rule.by === null ? [] : parent[rule.by]) as readonly string[]
    return record !== undefined && matchesRoles(record, roles, String(parent['semantic']))
  }

  filterableFields(entity: KindName): readonly string[] {
    return findEntity(entity).symbols.map((symbol) => symbol.name)
  }

  permissions(identityId: string, serviceId: string): readonly DialBind[] {
    const identity = this.state.get('identity', identityId)
    const service = this.state.get('service', serviceId)
    if (identity === undefined || service === undefined) return []
    return dialBindNames(this.state.access.bitsOf(identity, service))
  }

  accessibleServices(identityId: string, query: ListQuery): ListResult<Service> {
    return this.#whole({ of: 'services', identityId }, query)
  }

  listNaming<K extends KindName>(
    kind: K,
    field: FieldName<K>,
    value: string,
    query: ListQuery,
  ): ListResult<RecordOf<K>> {
    return this.#whole({ of: 'naming', entity: kind, field, value }, query)
  }

  /**
   * The role attributes that records of the kind have.
   * @throws {Problem} the problems of `list`.
   */
  roleAttributes(entity: KindName, query: ListQuery): RoleAttributes {
    return listRoleAttributes(this.state, findEntity(entity), query)
  }

  /**
   * Role attributes with a prefix, and the number of records that have each; computed in steps.
   */
  roleCounts(entity: KindName, query: RoleCountQuery): Generator<void, RoleCounts> {
    return countRoles(this.state, findEntity(entity), query)
  }

  /**
   * Lists the role attributes that records have or policies use.
   * @param mayRead false for a kind of policies that the result must not contain.
   * @throws {Problem} the problems of `list`.
   */
  roleAttributeUsage(
    entity: KindName,
    query: ListQuery,
    mayRead: (policies: KindName) => boolean,
  ): RoleAttributeUsage {
    return listRoleAttributeUsage(this.state, findEntity(entity), query, mayRead)
  }

  ref(entity: KindName, id: string): JsonObject | null {
    return entityReference(this.state, entity, id)
  }

  lastChangeAt(apiSessionId: string): number | null {
    const session = this.state.get('apiSession', apiSessionId)
    if (session === undefined) return null
    const { classes } = this.state.access
    return servicesChangedAtMs(this.state, session, classes.of(session.identityId))
  }

  accessBetween(identityId: string, serviceId: string): IdentityServiceAccess | null {
    const state = this.state
    const identity = state.get('identity', identityId)
    const service = state.get('service', serviceId)
    if (identity === undefined || service === undefined) return null
    return {
      permissions: dialBindNames(state.access.bitsOf(identity, service)),
      policies: linkingPolicies(state, identity, service).map(({ id, type }) => ({ id, type })),
      identityRouterCount: routersForIdentity(state, identity).size,
      serviceRouterCount: routersForService(state, service).size,
      commonRouters: [...commonRouters(state, identity, service)].flatMap(
        (id) => state.get('edgeRouter', id) ?? [],
      ),
    }
  }

  /** Explains why the identity may or may not use the service, according to the current records. */
  explainAccess(identity: Identity, service: Service): AccessExplanation {
    return explainAccess(this.state, identity, service)
  }

  /** Previews how writes would change access; nothing is written. */
  previewAccess(writes: readonly PreviewedWrite[], caller: PreviewCaller): AccessPreview {
    return previewAccess(() => this.state, writes, caller, rulesForKind)
  }

  listHistory(query: HistoryQuery): Generator<void, ListResult> {
    return listHistory(this.state, query)
  }

  auditRecordAt(index: number): EntityRecord | undefined {
    return this.state.audit.at(index)
  }

  isRouterOnline(routerId: string): boolean {
    return this.#routers().of(routerId) !== null
  }

  mayServeClients(routerId: string): boolean {
    const status = this.#routers().of(routerId)
    // Without a host name, the listeners are unknown as well, because a router reports both in one
    // message.
    if (status === null || status.hostname === '') return true
    return Object.keys(status.protocols).length > 0
  }

  servesClients(routerId: string): boolean {
    const status = this.#routers().of(routerId)
    return status !== null && Object.keys(status.protocols).length > 0
  }

  routersOfIdentity(identityId: string): LiveIdSet {
    const identity = this.state.get('identity', identityId)
    return identity === undefined ? emptyIds : routersForIdentity(this.state, identity)
  }

  identitiesOfRouter(routerId: string): RouterIdentities {
    const router = this.state.get('edgeRouter', routerId)
    if (router === undefined) return { key: '', identities: emptyIds }
    const { policyIds, identities } = identitiesForRouter(this.state, router)
    return { key: policyIds.join(' '), identities }
  }

  policiesBetween(
    identityId: string,
    serviceId: string,
    type: DialBind,
  ): readonly PolicyWithPostureChecks[] {
    const identity = this.state.get('identity', identityId)
    const service = this.state.get('service', serviceId)
    if (identity === undefined || service === undefined) return []
    return linkingPolicies(this.state, identity, service)
      .filter((policy) => policy.type === type)
      .map((policy) => toPolicyWithPostureChecks(this.state, policy))
  }

  policiesOfIdentity(identityId: string): readonly PolicyWithPostureChecks[] {
    const identity = this.state.get('identity', identityId)
    if (identity === undefined) return []
    return policiesForIdentity(this.state, identity).map((policy) =>
      toPolicyWithPostureChecks(this.state, policy),
    )
  }

  serviceSessionsAfter(afterId: string, max: number): readonly Session[] {
    const table = this.#table('session')
    const start = table.ids.rank(afterId) + (table.ids.has(afterId) ? 1 : 0)
    return table.ids.slice(start, max).flatMap((id) => table.get(id) ?? [])
  }

  detail(
    entity: KindName,
    record: EntityRecord,
    callerId: string,
    shownFor: ServiceDetailScope = noServiceDetailScope,
  ): JsonObject {
    const detail = buildRecordDetail(
      entity,
      record,
      this.#detailContext(entity, callerId, shownFor),
    )
    if (!hasSecretsHiddenFromNonAdmin(entity, record)) return detail
    const isForAdmin = this.state.get('identity', callerId)?.isAdmin === true
    return isForAdmin ? detail : detailWithoutAdminSecrets(detail)
  }

  detailSerializer(
    entity: KindName,
    callerId: string,
    shownFor: ServiceDetailScope = noServiceDetailScope,
  ): (record: EntityRecord) => string {
    const context = this.#detailContext(entity, callerId, shownFor)
    return (record) =>
      // The detail is not cached if administrators and other callers get different details.
      hasSecretsHiddenFromNonAdmin(entity, record)
        ? JSON.stringify(this.detail(entity, record, callerId, shownFor))
        : this.#details.serialize(entity, record, context)
  }

  #detailContext(entity: KindName, callerId: string, shownFor: ServiceDetailScope): DetailContext {
    if (!entitiesByName.has(entity))
      throw new AssertionError(`there is a descriptor named ${entity}`)
    const { state } = this
    const live = { routers: this.#routers(), uses: this.#uses, nowMs: this.#clock.nowMs() }
    return { state, callerId, ...shownFor, ...live }
  }

  nextAccessEndMs(): number | null {
    return nextAccessExpiryMs(this.state)
  }

  sessionsThat(
    isOver: (session: ApiSession) => boolean,
    max: number,
  ): { readonly id: string; readonly lastActivityMs: number }[] {
    const over: { id: string; lastActivityMs: number }[] = []
    for (const { record } of this.#table('apiSession').rows.values()) {
      if (!isOver(record)) continue
      over.push({ id: record.id, lastActivityMs: record.lastActivityAt ?? 0 })
      if (over.length >= max) break
    }
    return over
  }

  /** Starts a check of all indexes, digests and references. */
  scanIntegrity(): IntegrityScan {
    return new IntegrityScan(this.state)
  }
}

import { lastSeenMs, routerPresenceMs } from './records/last-seen.ts'
import type { Router } from '../entities/kinds/router.ts'
import type { SessionUses } from '../ports/session-uses.ts'
import { isObject } from '../entities/check-fields.ts'
import type { Entity, EntityLink } from '../entities/define-entity.ts'
import type { ComputedSource, VisibilityCondition, Field } from '../entities/fields.ts'
import { entitiesByName, findEntity } from '../entities/registry.ts'
import { passwordLockPeriod } from './apply/authentication.ts'
import type { Identity } from '../entities/kinds/identity.ts'
import { serviceConfigHolder } from '../entities/kinds/service-config.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { SlotCache } from '../lib/slot-cache.ts'
import type { EvaluatedPosture } from '../ports/evaluated-posture.ts'
import type { RouterStatuses } from '../ports/router-status.ts'
import type { ShownConfigTypes, DialBind } from '../ports/state-view.ts'
import { findPolicyPostureChecks } from './access/policy-posture-checks.ts'
import { BIND_BIT, DIAL_BIT, linkingPolicies, rolesForDisplay } from './records/roles.ts'
import { readLiveRouterField } from './records/live-router-field.ts'
import type { State } from './records/state.ts'
import type { ClusterState } from './access/cluster-state.ts'

/** Data, in addition to the record, from which its detail is computed. */
export interface DetailContext {
  readonly state: ClusterState
  /** The identity whose permissions the detail of a service shows. */
  readonly callerId: string
  readonly configTypes: ShownConfigTypes
  /** Posture of the caller. */
  readonly posture: EvaluatedPosture
  readonly routers: RouterStatuses
  readonly uses: SessionUses
  readonly nowMs: number
  /**
   * BIND and DIAL bits of the caller on a record; absent until a member of the detail needs them.
   */
  callerBits?: { readonly on: EntityRecord; readonly bits: number }
}

type Source = (record: EntityRecord, context: DetailContext) => Json

/**
 * JSON texts of values that the details of many records share. Lists of services contain many such
 * values, and finding a text takes less time than creating it.
 */
const sharedTexts = new WeakMap<object, string>()

function shared<T extends object>(value: T): T {
  sharedTexts.set(value, JSON.stringify(value))
  return Object.freeze(value)
}

function jsonText(value: Json): string {
  const known = typeof value === 'object' && value !== null ? sharedTexts.get(value) : undefined
  return known ?? JSON.stringify(value)
}

const permissionNames: Readonly<Record<'none' | 'bind' | 'dial' | 'both', readonly DialBind[]>> = {
  none: shared([]),
  bind: shared(['Bind']),
  dial: shared(['Dial']),
  both: shared(['Bind', 'Dial']),
}

/** Names of the BIND and DIAL bits. */
export function dialBindNames(bits: number): readonly DialBind[] {
  const { none, bind, dial, both } = permissionNames
  if ((bits & BIND_BIT) === 0) return (bits & DIAL_BIT) === 0 ? none : dial
  return (bits & DIAL_BIT) === 0 ? bind : both
}

/** UTC time in RFC 3339 format, with milliseconds. */
function dateTime(ms: number): string {
  return new Date(ms).toISOString()
}

function hrefOf(entity: Entity, record: EntityRecord, link: EntityLink): string {
  if (link.by === null) return `./${entity.collection}/${record.id}/${link.key}`
  return `./${link.by.collection}/${String(record[link.by.field])}`
}

function holds(condition: VisibilityCondition, record: EntityRecord): boolean {
  return condition.is.includes(record[condition.field] ?? null)
}

function linksOf(entity: Entity, record: EntityRecord): JsonObject {
  const links: Record<string, JsonObject> = {
    self: { href: `./${entity.collection}/${record.id}` },
  }
  for (const link of entity.links) {
    if (link.when === null || holds(link.when, record))
      links[link.key] = { href: hrefOf(entity, record, link) }
  }
  return links
}

/** A reference {_links, entity, id, name}; null when the record does not exist. */
export function entityReference(state: State, kind: KindName, id: string): JsonObject | null {
  const entity = entitiesByName.get(kind)
  const record = state.get(kind, id)
  if (entity === undefined || record === undefined) return null
  return {
    _links: linksOf(entity, record),
    entity: entity.collection,
    id,
    name: record['name'] ?? '',
  }
}

function textField(record: EntityRecord, field: string): string {
  const value = record[field]
  return typeof value === 'string' ? value : ''
}

function byKey(
  source: Extract<ComputedSource, { readonly from: 'byKey' }>,
  record: EntityRecord,
  context: DetailContext,
): JsonObject {
  const { state } = context
  const shown: Record<string, JsonObject> = {}
  for (const id of state.table(source.of).indexes.ids(source.by, record.id)) {
    const other = state.get(source.of, id)
    const key = other === undefined ? '' : textField(other, source.key)
    const names = source.shows[key]
    if (other === undefined || names === undefined) continue
    const values = names.map((name) => [name, shownIn(source.of, name, other, context) ?? ''])
    shown[key] = Object.fromEntries([['id', id], ...values]) as JsonObject
  }
  return shown
}

/** Value of one member in the detail of a record. */
function shownIn(kind: KindName, name: string, record: EntityRecord, context: DetailContext): Json {
  if (name === 'createdAt' || name === 'updatedAt') return dateTime(record[name])
  const shown = shownFields.get(kind)?.find((field) => field.name === name)
  return shown?.source(record, context) ?? null
}

/** Value of a field in the first record of kind `of` that references this record. */
function fieldOfNaming(
  source: Extract<ComputedSource, { readonly from: 'fieldOfNaming' }>,
  record: EntityRecord,
  context: DetailContext,
): Json {
  const { state } = context
  for (const id of state.table(source.of).indexes.ids(source.by, record.id)) {
    const other = state.get(source.of, id)
    if (other !== undefined) return shownIn(source.of, source.field, other, context)
  }
  return source.otherwise ?? null
}

function callerBits(record: EntityRecord, context: DetailContext): number {
  const known = context.callerBits
  if (known?.on === record) return known.bits
  const caller = context.state.get('identity', context.callerId)
  const bits = caller === undefined ? 0 : context.state.access.bitsOf(caller, record)
  context.callerBits = { on: record, bits }
  return bits
}

/**
 * Policy list of a service if no posture check exists, or if no policy links the caller to the
 * service: one entry for each permission, all passing.
 */
function withoutChecks(permissions: readonly string[]): JsonObject[] {
  const known = listsWithoutChecks.get(permissions)
  if (known !== undefined) return known
  const list = permissions.map((policyType) => ({
    policyId: `dummy ${policyType.toLowerCase()} policy: no posture checks defined`,
    policyType,
    isPassing: true,
    postureQueries: [],
  }))
  listsWithoutChecks.set(permissions, shared(list))
  return list
}

const listsWithoutChecks = new WeakMap<readonly string[], JsonObject[]>()

function policyQueries(record: EntityRecord, context: DetailContext): Json {
  const { state, posture } = context
  const permissions = shownPermissions(record, context)
  const hasChecks = (state.tables.get('postureCheck')?.rows.size ?? 0) > 0
  if (!hasChecks) return withoutChecks(permissions)
  const caller = state.get('identity', context.callerId)
  const policies = caller === undefined ? [] : linkingPolicies(state, caller, record)
  if (policies.length === 0) return withoutChecks(permissions)
  return policies.map((policy) => {
    const queries = findPolicyPostureChecks(state, policy).map((check) => posture.queryOf(check))
    return {
      policyId: policy.id,
      policyType: policy.type,
      isPassing: queries.every(({ isPassing }) => isPassing),
      postureQueries: queries,
    }
  })
}

function shownPermissions(record: EntityRecord, context: DetailContext): readonly string[] {
  const permissions = dialBindNames(callerBits(record, context))
  return permissions.length === 0 ? noPermission : permissions
}

const noPermission: readonly string[] = shared(['Invalid'])
const noConfigData: JsonObject = shared({})

/**
 * Config data of a service for the caller, by type: the identity's overrides replace the service's
 * configs.
 */
function configData(by: string, record: EntityRecord, context: DetailContext): JsonObject {
  const { state, callerId, configTypes } = context
  if (configTypes !== 'all' && configTypes.size === 0) return noConfigData
  const ids = [...((record[by] ?? []) as readonly string[])]
  const holder = serviceConfigHolder(callerId, record.id)
  for (const id of state.table('serviceConfig').indexes.ids('holder', holder)) {
    const given = state.get('serviceConfig', id)
    if (given !== undefined) ids.push(given.configId)
  }
  const byTypeName = new Map<string, Json>()
  for (const id of ids) {
    const config = state.get('config', id)
    if (config === undefined) continue
    if (configTypes !== 'all' && !configTypes.has(config.configTypeId)) continue
    const name = state.get('configType', config.configTypeId)?.name
    if (name !== undefined) byTypeName.set(name, config.data)
  }
  // A type may have any name, even `__proto__`. `fromEntries` defines each name as an own property.
  return Object.fromEntries([...byTypeName].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function isWithin(
  source: Extract<ComputedSource, { readonly from: 'isWithin' }>,
  record: EntityRecord,
  nowMs: number,
): boolean {
  const since = record[source.since]
  const until = record[source.until]
  if (typeof since !== 'number') return false
  return typeof until !== 'number' || until > nowMs
}

function sourceOf(source: ComputedSource, entity: Entity): Source {
  switch (source.from) {
    case 'constant':
      return () => source.value
    case 'field': {
      const read = storedSource(source.field, entity.fields[source.field])
      return (record) => read(record) ?? source.otherwise ?? null
    }
    case 'anyFlag':
      return (record) =>
        Object.entries(source.of).some(([name, value]) => (record[name] === true) === value)
    case 'fieldOfNaming':
      return (record, context) => fieldOfNaming(source, record, context)
    case 'entityRef':
      return (record, { state }) => {
        const ref = entityReference(state, source.to, textField(record, source.by))
        if (ref === null || source.hasUrlName !== true) return ref
        return { ...ref, urlName: ref['entity'] ?? '' }
      }
    case 'rolesDisplay':
      return (record, { state }) =>
        rolesForDisplay(state, source.to, (record[source.by] ?? []) as readonly string[]).map(
          ({ role, name }) => ({ role, name }),
        )
    case 'fieldOf': {
      const zero = findEntity(source.to).fields[source.field]?.zero ?? null
      return (record, { state }) =>
        state.get(source.to, textField(record, source.by))?.[source.field] ?? zero
    }
    case 'isReferenced':
      return (record, { state }) =>
        state.table(source.of).indexes.ids(source.by, record.id).size > 0
    case 'passwordLock':
      return (record, { state, nowMs }) => {
        const lock = passwordLockPeriod(state, record as Identity, nowMs)
        if (lock === null) return null
        return {
          lockedAt: dateTime(lock.sinceMs),
          lockedUntil: lock.untilMs === null ? null : dateTime(lock.untilMs),
        }
      }
    case 'isWithin':
      return (record, { nowMs }) => isWithin(source, record, nowMs)
    case 'byKey':
      return (record, context) => byKey(source, record, context)
    case 'routerConnection':
      return (record, { routers }) => {
        const isConnected = routers.hasConnection(record.id)
        if (source.shows === 'flag') return isConnected === true
        return isConnected === null ? 'unknown' : isConnected ? 'online' : 'offline'
      }
    case 'lastSeen':
      return (record, { state, uses }) => timeOrNull(lastSeenMs(state, record as Identity, uses))
    case 'routerPresence':
      return (record, { routers }) => {
        const presence = routers.presenceOf(record.id)
        return timeOrNull(routerPresenceMs(record as Router, presence, source.shows))
      }
    case 'dialCost':
      return (record, { routers }) => routers.dialCost(record.id)
    case 'routerStatus':
      return (record, { routers }) => readLiveRouterField(routers.of(record.id), source.shows)
    case 'permissions':
      return shownPermissions
    case 'policyQueries':
      return policyQueries
    case 'configData':
      return (record, context) => configData(source.by, record, context)
  }
}

function timeOrNull(ms: number | null): Json {
  return ms === null ? null : dateTime(ms)
}

/**
 * Reads stored values as the detail shows them: times as text, and the zero value if an older
 * record lacks the field.
 */
function storedSource(name: string, field: Field | undefined): (record: EntityRecord) => Json {
  if (field?.kind === 'timestamp') {
    return (record) => {
      const value = record[name]
      return typeof value === 'number' ? dateTime(value) : null
    }
  }
  const zero = field?.zero ?? null
  return (record) => record[name] ?? zero
}

/** Sources of computed values that depend only on the record. */
const ownSources: ReadonlySet<ComputedSource['from']> = new Set(['constant', 'field', 'anyFlag'])

interface Shown {
  readonly name: string
  readonly source: Source
  /** True if the value depends only on the record. */
  readonly isOwn: boolean
  readonly isOptional: boolean
  readonly when: VisibilityCondition | null
}

const shownFields: ReadonlyMap<KindName, readonly Shown[]> = new Map(
  [...entitiesByName.values()].map((entity) => [entity.name, compile(entity)]),
)

function compile(entity: Entity): Shown[] {
  const shown: Shown[] = []
  for (const name of entity.fieldNames) {
    const field = entity.fields[name]
    if (field === undefined || field.shown === 'never') continue
    const computed = field.computed ?? field.shownAs
    const read = computed === null ? storedSource(name, field) : sourceOf(computed, entity)
    const source = field.isNullIfEmpty ? nullIfEmpty(read) : read
    const when = typeof field.shown === 'string' ? null : field.shown
    const isOwn = computed === null || ownSources.has(computed.from)
    shown.push({ name, source, isOwn, isOptional: field.shown === 'whenSet', when })
  }
  return shown
}

function nullIfEmpty(source: Source): Source {
  return (record, context) => {
    const value = source(record, context)
    return isEmpty(value) || (Array.isArray(value) && value.length === 0) ? null : value
  }
}

function isUnset(value: Json): boolean {
  return value === false || isEmpty(value)
}

/** Whether the value is null, an empty string or an empty object. */
function isEmpty(value: Json): boolean {
  return value === null || value === '' || (isObject(value) && Object.keys(value).length === 0)
}

/** Computes the detail of a record, as responses show it. */
export function buildRecordDetail(
  kind: KindName,
  record: EntityRecord,
  context: DetailContext,
): JsonObject {
  const detail: Record<string, Json> = headOf(kind, record)
  for (const shown of shownFields.get(kind) ?? []) {
    const value = valueOf(shown, record, context)
    if (value !== undefined) detail[shown.name] = value
  }
  return detail
}

function headOf(kind: KindName, record: EntityRecord): Record<string, Json> {
  return {
    _links: linksOf(findEntity(kind), record),
    createdAt: dateTime(record.createdAt),
    id: record.id,
    updatedAt: dateTime(record.updatedAt),
  }
}

/**
 * Computes one member of a detail.
 * @returns undefined if the detail omits the member.
 */
function valueOf(shown: Shown, record: EntityRecord, context: DetailContext): Json | undefined {
  if (shown.when !== null && !holds(shown.when, record)) return undefined
  const value = shown.source(record, context)
  return shown.isOptional && isUnset(value) ? undefined : value
}

/** Maximum number of cached texts. */
const KEPT_TEXTS = 8192
/** Longer texts are not cached. */
const KEPT_CHARACTERS_MAX = 2048

/**
 * Serializes details as JSON. Caches the part of each JSON text that depends only on its record.
 */
export class DetailSerializer {
  readonly #kept = new SlotCache<OwnText>(KEPT_TEXTS)

  /**
   * Serializes the detail of a record as JSON.
   * @returns the same text as `JSON.stringify` for the result of `buildRecordDetail`.
   */
  serialize(kind: KindName, record: EntityRecord, context: DetailContext): string {
    const { parts } = this.#ownText(kind, record, context)
    let [text = ''] = parts
    let at = 1
    for (const shown of shownFields.get(kind) ?? []) {
      if (shown.isOwn) continue
      const value = valueOf(shown, record, context)
      if (value !== undefined) text += `,"${shown.name}":${jsonText(value)}`
      text += parts[at] ?? ''
      at += 1
    }
    return `${text}}`
  }

  #ownText(kind: KindName, record: EntityRecord, context: DetailContext): OwnText {
    const known = this.#kept.get(record.revision)
    // The same record object means the same content, because records are replaced, never modified.
    if (known?.record === record && known.kind === kind) return known
    const made = { kind, record, parts: ownParts(kind, record, context) }
    const characters = made.parts.reduce((sum, part) => sum + part.length, 0)
    if (characters <= KEPT_CHARACTERS_MAX) this.#kept.set(record.revision, made)
    return made
  }
}

interface OwnText {
  readonly kind: KindName
  readonly record: EntityRecord
  /** The constant parts of the text before, between and after the variable members. */
  readonly parts: readonly string[]
}

function ownParts(kind: KindName, record: EntityRecord, context: DetailContext): string[] {
  const parts: string[] = []
  let part = JSON.stringify(headOf(kind, record)).slice(0, -1)
  for (const shown of shownFields.get(kind) ?? []) {
    if (!shown.isOwn) {
      parts.push(part)
      part = ''
      continue
    }
    const value = valueOf(shown, record, context)
    if (value !== undefined) part += `,"${shown.name}":${JSON.stringify(value)}`
  }
  parts.push(part)
  return parts
}

import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { RecordOf } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import {
  BIND_BIT,
  DIAL_BIT,
  matchesRoles,
  unorderedIdsSelectedByRoles,
  activePoliciesSelecting,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'
import type { AccessChanges, KindChangesById, AccessRelevantKind } from './access-changes.ts'

export type BeforeOrAfter = 'before' | 'after'

/**
 * Maximum number of services whose policies one evaluation caches, and maximum total number of
 * services in the cached results of role lists.
 */
const rememberedMax = 100_000

/**
 * Policies, services and configs before and after one log entry, for one evaluation of access. The
 * indexes contain only the state after the entry; the state before it is derived from the changed
 * records.
 */
export class AccessBeforeAndAfter {
  readonly policies: KindChangesById<'servicePolicy'>
  readonly services: KindChangesById<'service'>
  readonly checks: KindChangesById<'postureCheck'>
  readonly configs: KindChangesById<'config'>
  readonly configTypes: KindChangesById<'configType'>
  readonly overrides: KindChangesById<'serviceConfig'>
  readonly identities: KindChangesById<'identity'>
  /**
   * Whether any posture check exists. Without posture checks, the details of services name no
   * policies.
   */
  readonly hasChecks: Readonly<Record<BeforeOrAfter, boolean>>
  readonly #state: State
  readonly #policiesOf = new Map<string, readonly ServicePolicy[]>()
  readonly #servicesOf = new Map<string, Iterable<string> & { readonly size: number }>()
  #remembered = 0

  constructor(state: State, changes: AccessChanges) {
    this.#state = state
    this.policies = changes.servicePolicy
    this.services = changes.service
    this.checks = changes.postureCheck
    this.configs = changes.config
    this.configTypes = changes.configType
    this.overrides = changes.serviceConfig
    this.identities = changes.identity
    const now = state.table('postureCheck').rows.size
    let before = now
    for (const check of this.checks.values()) {
      before += Number(check.before !== undefined) - Number(check.after !== undefined)
    }
    this.hasChecks = { before: before > 0, after: now > 0 }
  }

  #record<K extends AccessRelevantKind>(
    kind: K,
    changed: KindChangesById<K>,
    id: string,
    side: BeforeOrAfter,
  ): RecordOf<K> | undefined {
    const change = changed.get(id)
    return change === undefined ? this.#state.get(kind, id) : change[side]
  }

  policy(id: string, side: BeforeOrAfter): ServicePolicy | undefined {
    return this.#record('servicePolicy', this.policies, id, side)
  }

  service(id: string, side: BeforeOrAfter): Service | undefined {
    return this.#record('service', this.services, id, side)
  }

  /**
   * The policies whose role list `field` selects the record, before or after the changes (`side`).
   */
  policiesMeaning(
    field: 'serviceRoles' | 'postureCheckRoles',
    record: EntityRecord | undefined,
    side: BeforeOrAfter,
  ): readonly ServicePolicy[] {
    if (record === undefined) return []
    const found: ServicePolicy[] = []
    const table = this.#state.table('servicePolicy')
    for (const policy of activePoliciesSelecting(table, field, record)) {
      if (!this.policies.has(policy.id)) found.push(policy)
    }
    for (const change of this.policies.values()) {
      const { [side]: policy } = change
      if (policy !== undefined && matchesRoles(record, policy[field], policy.semantic)) {
        found.push(policy)
      }
    }
    return found
  }

  /** Policies that select one service. They are cached, because many access classes need them. */
  policiesOf(serviceId: string, side: BeforeOrAfter): readonly ServicePolicy[] {
    const key = `${side} ${serviceId}`
    const known = this.#policiesOf.get(key)
    if (known !== undefined) return known
    const found = this.policiesMeaning('serviceRoles', this.service(serviceId, side), side)
    if (this.#policiesOf.size < rememberedMax) this.#policiesOf.set(key, found)
    return found
  }

  /** The BIND and DIAL bits that the policies grant on the service. */
  bits(policies: ReadonlySet<string>, serviceId: string, side: BeforeOrAfter): number {
    let bits = 0
    for (const policy of this.policiesOf(serviceId, side)) {
      if (policies.has(policy.id)) bits |= policyAccessBit(policy)
    }
    return bits
  }

  /**
   * Ids of the services that the policy selects. The result omits services that the entry changed.
   */
  *unchangedServices({ serviceRoles: roles, semantic }: ServicePolicy): Iterable<string> {
    if (roles.length === 0) return
    const key = `${semantic}\n${roles.join('\n')}`
    let found = this.#servicesOf.get(key)
    if (found === undefined) {
      found = unorderedIdsSelectedByRoles(this.#state, 'service', [{ roles, semantic }])
      this.#remembered += found.size
      if (this.#remembered < rememberedMax) this.#servicesOf.set(key, found)
    }
    for (const id of found) if (!this.services.has(id)) yield id
  }

  meansUnchangedService(policy: ServicePolicy): boolean {
    for (const _ of this.unchangedServices(policy)) return true
    return false
  }

  meansAnyService(policy: ServicePolicy, side: BeforeOrAfter): boolean {
    for (const { [side]: service } of this.services.values()) {
      if (service !== undefined && matchesRoles(service, policy.serviceRoles, policy.semantic)) {
        return true
      }
    }
    return this.meansUnchangedService(policy)
  }

  /** Ids of the unchanged posture checks that the policy selects. */
  unchangedChecks({ postureCheckRoles: roles, semantic }: ServicePolicy): string[] {
    if (roles.length === 0) return []
    const found = unorderedIdsSelectedByRoles(this.#state, 'postureCheck', [{ roles, semantic }])
    return [...found].filter((id) => !this.checks.has(id)).sort()
  }

  /**
   * JSON of the configs of an unchanged service that the identity sees, by type name. The
   * identity's overrides replace the service's configs of the same type.
   */
  configsShown(identityId: string, service: Service, side: BeforeOrAfter): string {
    const shown = new Map<string, string>()
    for (const id of [...service.configs, ...this.#overriding(identityId, service.id, side)]) {
      const config = this.#record('config', this.configs, id, side)
      const typeId = config?.configTypeId ?? ''
      const type = this.#record('configType', this.configTypes, typeId, side)
      if (config === undefined || type === undefined) continue
      shown.set(type.name, JSON.stringify(config.data))
    }
    return JSON.stringify([...shown].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #overriding(identityId: string, serviceId: string, side: BeforeOrAfter): string[] {
    const holder = serviceConfigHolder(identityId, serviceId)
    const found: string[] = []
    for (const id of this.#state.table('serviceConfig').indexes.ids('holder', holder)) {
      if (this.overrides.has(id)) continue
      const known = this.#state.get('serviceConfig', id)
      if (known !== undefined) found.push(known.configId)
    }
    for (const change of this.overrides.values()) {
      const { [side]: own } = change
      if (own?.holder === holder) found.push(own.configId)
    }
    return found
  }
}

export function policyAccessBit({ type }: ServicePolicy): number {
  return type === 'Bind' ? BIND_BIT : DIAL_BIT
}

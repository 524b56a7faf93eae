import type { KindName } from '../../../src/entities/kind-records.ts'
import type { EntityRecord } from '../../../src/lib/entity-record.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

// Computes the grants of policies from all records: every policy for every record, according to the
// rules and without indexes.

const rowsOf = (state: ClusterState, kind: KindName): EntityRecord[] =>
  [...state.table(kind).rows.values()].map(({ record }) => record)
const textsOf = (record: EntityRecord, field: string): readonly string[] =>
  record[field] as readonly string[]

export const identitiesOf = (state: ClusterState): EntityRecord[] => rowsOf(state, 'identity')
export const servicesOf = (state: ClusterState): EntityRecord[] =>
  rowsOf(state, 'service').filter((service) => service['isFabricOnly'] !== true)
export const edgeRoutersOf = (state: ClusterState): EntityRecord[] =>
  rowsOf(state, 'router').filter((router) => router['isEdge'] === true)
export const sessionsOf = (state: ClusterState): EntityRecord[] => rowsOf(state, 'session')

/** Rules (a) to (d) for the meaning of a role list, each applied separately. */
function means(policy: EntityRecord, field: string, record: EntityRecord): boolean {
  const roles = textsOf(policy, field)
  const own = textsOf(record, 'roleAttributes').map((attribute) => `#${attribute}`)
  const named = roles.filter((role) => role.startsWith('#'))
  if (roles.some((role) => role === `@${record.id}`)) return true
  if (roles.some((role) => role === '#all')) return true
  if (policy['semantic'] === 'AnyOf') return named.some((role) => own.includes(role))
  return named.length > 0 && named.every((role) => own.includes(role))
}

/** Policies of one kind that connect the two records, sorted by ID. */
export function slowLinked(
  state: ClusterState,
  kind: KindName,
  fields: readonly [string, string],
  pair: readonly [EntityRecord, EntityRecord],
): EntityRecord[] {
  return rowsOf(state, kind)
    .filter((policy) => means(policy, fields[0], pair[0]) && means(policy, fields[1], pair[1]))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

export function slowServicePolicies(
  state: ClusterState,
  identity: EntityRecord,
  service: EntityRecord,
): EntityRecord[] {
  const linked = slowLinked(
    state,
    'servicePolicy',
    ['identityRoles', 'serviceRoles'],
    [identity, service],
  )
  return linked.filter((policy) => policy['isEnded'] !== true)
}

export function slowTypes(
  state: ClusterState,
  identity: EntityRecord,
  service: EntityRecord,
): string[] {
  const types = slowServicePolicies(state, identity, service).map((policy) =>
    String(policy['type']),
  )
  return ['Bind', 'Dial'].filter((type) => types.includes(type))
}

export function slowRouters(
  state: ClusterState,
  of: { readonly identity?: EntityRecord; readonly service?: EntityRecord },
): string[] {
  return edgeRoutersOf(state)
    .filter((router) => {
      const { identity, service } = of
      const byIdentity =
        identity === undefined ||
        slowLinked(
          state,
          'edgeRouterPolicy',
          ['identityRoles', 'edgeRouterRoles'],
          [identity, router],
        ).length > 0
      const byService =
        service === undefined ||
        slowLinked(
          state,
          'serviceEdgeRouterPolicy',
          ['serviceRoles', 'edgeRouterRoles'],
          [service, router],
        ).length > 0
      return byIdentity && byService
    })
    .map(({ id }) => id)
    .sort()
}

/** Configs by type name: the identity's configs replace those of the service. */
function slowConfigs(state: ClusterState, identity: EntityRecord, service: EntityRecord) {
  const shown: Record<string, unknown> = {}
  for (const type of rowsOf(state, 'configType')) {
    const ofType = (id: string): EntityRecord | undefined =>
      rowsOf(state, 'config').find(
        (config) => config.id === id && config['configTypeId'] === type.id,
      )
    const own = rowsOf(state, 'serviceConfig')
      .filter((given) => given['identityId'] === identity.id && given['serviceId'] === service.id)
      .map((given) => ofType(String(given['configId'])))
    const theirs = textsOf(service, 'configs').map(ofType)
    const config = [...own, ...theirs].find((one) => one !== undefined)
    if (config !== undefined) shown[String(type['name'])] = config['data']
  }
  return shown
}

function slowQueries(state: ClusterState, identity: EntityRecord, service: EntityRecord): unknown {
  const checks = rowsOf(state, 'postureCheck').sort((a, b) => (a.id < b.id ? -1 : 1))
  if (checks.length === 0) return 'no posture checks defined'
  return slowServicePolicies(state, identity, service).map((policy) => [
    policy.id,
    policy['type'],
    checks.filter((check) => means(policy, 'postureCheckRoles', check)),
  ])
}

/** Everything that a client receives about the services that it may use, as one text. */
export function slowClientView(state: ClusterState, identity: EntityRecord): string {
  const seen = servicesOf(state)
    .map((service) => ({ service, types: slowTypes(state, identity, service) }))
    .filter(({ types }) => types.length > 0)
    .sort((a, b) => (a.service.id < b.service.id ? -1 : 1))
  return JSON.stringify(
    seen.map(({ service, types }) => [
      service,
      types,
      Object.entries(slowConfigs(state, identity, service)).sort(([a], [b]) => (a < b ? -1 : 1)),
      slowQueries(state, identity, service),
    ]),
  )
}

/** Identities with an API session, sorted. */
export function slowActive(state: ClusterState): string[] {
  const ids = rowsOf(state, 'apiSession').map((session) => String(session['identityId']))
  return [...new Set(ids)].sort()
}

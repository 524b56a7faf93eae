import { sortByName } from '../../app/name-order.ts'
import { hasPermission } from '../../app/management-document.ts'
import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'
import { pathRouters } from '../live/circuit-path.ts'
import { readFabricRows } from '../live/live-data.ts'
import { isObject } from './json-values.ts'
import { serviceAddresses } from './config-address.ts'
import type { ConsoleKind } from './kinds.ts'
import { readRecordNames, readRows, type RecordRow, ROWS_MAX, type RowPage } from './record-data.ts'
import { readRoleCandidates } from './role-candidates.ts'
import { countSelected, roleListIn, selectsRecord } from './role-selection.ts'
import { rowTitle } from './row-title.ts'
import { readHostCounts } from './service-hosts.tsx'

/** Members that are added to a row of a list. */
type Additions = Readonly<Record<string, unknown>>
type Relate = (
  rows: readonly RecordRow[],
  signal?: AbortSignal,
) => Promise<(row: RecordRow) => Additions>

function idList(rows: readonly RecordRow[]): string {
  return `[${rows.map(({ id }) => JSON.stringify(id)).join(', ')}]`
}

/** The names of a service's configs, the addresses in them, and the number of its hosts. */
const relateServices: Relate = async (rows, signal) => {
  const ids = rows.flatMap(({ configs }) => (Array.isArray(configs) ? configs.map(String) : []))
  const [configRows, hosts] = await Promise.all([
    readConfigs([...new Set(ids)], signal).catch(() => []),
    readHostCounts(
      rows.map(({ id }) => id),
      signal,
    ).catch(() => null),
  ])
  const known = new Map(configRows.map((row) => [row.id, row]))
  return ({ id, configs }) => ({
    ...(Array.isArray(configs)
      ? {
          configsDisplay: configs.map((one) => ({ id: one, name: known.get(one)?.['name'] })),
          ...serviceAddresses(configs.flatMap((one) => known.get(one) ?? [])),
        }
      : {}),
    ...(hosts === null ? {} : { hosts: hosts.get(id) }),
  })
}

async function readConfigs(
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<readonly RecordRow[]> {
  if (ids.length === 0 || !hasPermission('config.read')) return []
  const filter = `id in [${ids.map((id) => JSON.stringify(id)).join(', ')}]`
  return (await readRows('configs', filter, signal)).rows
}

/**
 * The address in a config, and the services that use the config; no services if there are more than
 * one response contains.
 */
const relateConfigs: Relate = async (rows, signal) => {
  const filter = `anyOf(configs) in ${idList(rows)}`
  const services = hasPermission('service.read')
    ? await readRows('services', filter, signal).catch(() => null)
    : null
  const isWhole = services !== null && services.totalCount === services.rows.length
  return (row) => {
    const { clientAddress, hostAddress } = serviceAddresses([row])
    return {
      configValue: clientAddress ?? hostAddress,
      ...(isWhole
        ? {
            usedBy: sortByName(services.rows, rowTitle)
              .filter(({ configs }) => Array.isArray(configs) && configs.includes(row.id))
              .map((service) => ({ id: service.id, name: service['name'], entity: 'services' })),
          }
        : {}),
    }
  }
}

/** The number of configs of a type; none if there are more than one response contains. */
const relateConfigTypes: Relate = async (rows, signal) => {
  if (!hasPermission('config.read')) return () => ({})
  const filter = `type in ${idList(rows)}`
  const configs = await readRows('configs', filter, signal)
  if (configs.totalCount > configs.rows.length) return () => ({})
  return ({ id }) => ({
    configCount: configs.rows.filter(({ configTypeId }) => configTypeId === id).length,
  })
}

/** The identity that hosts a terminator, and whether the router of the terminator is online. */
const relateTerminators: Relate = async (rows, signal) => {
  const [hosted, offline] = await Promise.all([
    hasPermission('ops.read')
      ? readRows('terminators', `id in ${idList(rows)}`, signal, ROWS_MAX, FABRIC_API_PATH)
      : null,
    hasPermission('router.read') ? readRows('routers', 'connected = false', signal) : null,
  ])
  const hostIds = new Map(hosted?.rows.map(({ id, hostId }) => [id, String(hostId ?? '')]))
  const ids = [...new Set(hostIds.values())].filter((id) => id !== '')
  const names = hasPermission('identity.read')
    ? await readRecordNames('identities', ids, signal)
    : new Map<string, string>()
  const down =
    offline === null || offline.totalCount > offline.rows.length
      ? null
      : new Set(offline.rows.map(({ id }) => id))
  return ({ id, routerId }) => {
    const hostId = hostIds.get(id) ?? ''
    const host = { entity: 'identities', id: hostId, name: names.get(hostId) ?? hostId }
    return {
      ...(down === null ? {} : { isRouterOnline: !down.has(String(routerId)) }),
      ...(hostId === '' ? {} : { host }),
    }
  }
}

/** For a field with roles: the kind of the records, and the column with their number. */
interface RoleCount {
  readonly field: string
  readonly path: string
  readonly column: string
}

/** The number of records that each policy selects, for fields with roles. */
function relateRoles(...counts: readonly RoleCount[]): Relate {
  return async (rows, signal) => {
    const found = await Promise.all(
      counts.map(async (count) => {
        const lists = rows.map((row) => roleListIn(row, count.field))
        const candidates = await readRoleCandidates(count.path, lists, signal).catch(() => null)
        return { ...count, candidates }
      }),
    )
    return (row) =>
      Object.fromEntries(
        found.flatMap(({ field, column, candidates }) =>
          candidates === null ? [] : [[column, countSelected(roleListIn(row, field), candidates)]],
        ),
      )
  }
}

const countIdentities = { field: 'identityRoles', path: 'identities', column: 'identityCount' }
const countServices = { field: 'serviceRoles', path: 'services', column: 'serviceCount' }
const countRouters = { field: 'edgeRouterRoles', path: 'edge-routers', column: 'routerCount' }

/** The service policies that select a posture check. */
const relatePostureChecks: Relate = async (_, signal) => {
  if (!hasPermission('service-policy.read')) return () => ({})
  const policies = await readRows('service-policies', 'not isEmpty(postureCheckRoles)', signal)
  if (policies.totalCount > policies.rows.length) return () => ({})
  const lists = policies.rows.map((policy) => ({
    reference: { id: policy.id, name: policy['name'], entity: 'service-policies' },
    list: roleListIn(policy, 'postureCheckRoles'),
  }))
  return (row) => {
    const using = lists.filter(({ list }) => selectsRecord(list, row))
    const policies = using.map(({ reference }) => reference)
    return {
      policyCount: using.length,
      policies: sortByName(policies, ({ name }) => String(name)),
    }
  }
}

/** ID of the policy for identities without one. */
export const DEFAULT_AUTH_POLICY = 'default'

/**
 * The number of identities of an authentication policy. Most identities have the default policy, so
 * those with another policy usually fit into one response.
 */
const relateAuthPolicies: Relate = async (rows, signal) => {
  if (!hasPermission('identity.read')) return () => ({})
  const [byDefault, others] = await Promise.all([
    readRows('identities', `authPolicyId = "${DEFAULT_AUTH_POLICY}"`, signal, 1),
    readRows(
      'identities',
      `authPolicyId in ${idList(rows)} and authPolicyId != "${DEFAULT_AUTH_POLICY}"`,
      signal,
    ),
  ])
  const isWhole = others.totalCount === others.rows.length
  return ({ id }) => {
    if (id === DEFAULT_AUTH_POLICY) return { identityCount: byDefault.totalCount }
    if (!isWhole) return {}
    return { identityCount: others.rows.filter(({ authPolicyId }) => authPolicyId === id).length }
  }
}

/** Whether a router takes clients, so that it is also an edge router. */
const relateTransitRouters: Relate = async (rows, signal) => {
  const edge = await readRows('edge-routers', `id in ${idList(rows)}`, signal)
  const ids = new Set(edge.rows.map(({ id }) => id))
  return ({ id }) => ({ isEdgeRouter: ids.has(id) })
}

/** Maximum rows of a controller's answer; more may exist if an answer has as many. */
const FABRIC_ROWS_MAX = 500

/**
 * The number of links or circuits of each router; null if a controller did not answer, or if there
 * may be more rows.
 */
async function countByRouter(
  path: 'links' | 'circuits',
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, number> | null> {
  const { rows, silent } = await readFabricRows(path, signal)
  if (silent.length > 0 || rows.length >= FABRIC_ROWS_MAX) return null
  const counts = new Map<string, number>()
  for (const { sourceRouter, destRouter, path: route } of rows) {
    const routers = path === 'links' ? [sourceRouter, destRouter] : pathRouters(route)
    for (const router of routers) {
      const id = isObject(router) ? String(router['id']) : ''
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  }
  return counts
}

/** The number of links of a router, and the number of circuits over it. */
const relateEdgeRouters: Relate = async (_, signal) => {
  if (!hasPermission('ops.read')) return () => ({})
  const [links, circuits] = await Promise.all([
    countByRouter('links', signal),
    countByRouter('circuits', signal),
  ])
  return ({ id }) => ({
    ...(links === null ? {} : { linkCount: links.get(id) ?? 0 }),
    ...(circuits === null ? {} : { circuitCount: circuits.get(id) ?? 0 }),
  })
}

const relations: Readonly<Record<string, Relate>> = {
  services: relateServices,
  configs: relateConfigs,
  'config-types': relateConfigTypes,
  terminators: relateTerminators,
  'edge-router-policies': relateRoles(countIdentities, countRouters),
  'service-edge-router-policies': relateRoles(countServices, countRouters),
  'posture-checks': relatePostureChecks,
  'auth-policies': relateAuthPolicies,
  'transit-routers': relateTransitRouters,
  'edge-routers': relateEdgeRouters,
}

/** Whether the rows of a list need further requests for the records to which they relate. */
export function readsRelated({ path }: Pick<ConsoleKind, 'path'>): boolean {
  return path in relations
}

/** Adds to each row the values of related records that the list shows. */
export async function withRelated(
  kind: Pick<ConsoleKind, 'path'>,
  page: RowPage,
  signal?: AbortSignal,
): Promise<RowPage> {
  const relate = relations[kind.path]
  if (relate === undefined || page.rows.length === 0) return page
  // Errors are ignored, because a caller who may read these records may lack the permission for the
  // related ones.
  const addTo = await relate(page.rows, signal).catch(() => () => ({}))
  return { ...page, rows: page.rows.map((row) => ({ ...row, ...addTo(row) })) }
}

import { consoleApiClient } from '../../app/console-state.ts'
import { hasPermission } from '../../app/management-document.ts'
import { FABRIC_API_PATH, MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { serviceAddresses } from './config-address.ts'
import type { ConsoleKind } from './kinds.ts'
import { parseRowPage, readRecordNames, type RecordRow, type RowPage } from './record-data.ts'
import { readHostCounts } from './service-hosts.tsx'

/** Members that are added to a row of a list. */
type Additions = Readonly<Record<string, unknown>>
type Relate = (
  rows: readonly RecordRow[],
  signal: AbortSignal,
) => Promise<(row: RecordRow) => Additions>

const ROWS_MAX = 500

async function readRows(path: string, filter: string, signal: AbortSignal): Promise<RowPage> {
  const query = new URLSearchParams({ limit: String(ROWS_MAX), filter })
  return parseRowPage((await consoleApiClient.ask({ path: `${path}?${query}`, signal })).body)
}

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
  signal: AbortSignal,
): Promise<readonly RecordRow[]> {
  if (ids.length === 0 || !hasPermission('config.read')) return []
  const filter = `id in [${ids.map((id) => JSON.stringify(id)).join(', ')}]`
  return (await readRows(`${MANAGEMENT_API_PATH}/configs`, filter, signal)).rows
}

/** The services that use a config; none if there are more than one response contains. */
const relateConfigs: Relate = async (rows, signal) => {
  if (!hasPermission('service.read')) return () => ({})
  const filter = `anyOf(configs) in ${idList(rows)}`
  const services = await readRows(`${MANAGEMENT_API_PATH}/services`, filter, signal)
  if (services.totalCount > services.rows.length) return () => ({})
  return ({ id }) => ({
    usedBy: services.rows
      .filter(({ configs }) => Array.isArray(configs) && configs.includes(id))
      .map((service) => ({ id: service.id, name: service['name'], entity: 'services' })),
  })
}

/** The number of configs of a type; none if there are more than one response contains. */
const relateConfigTypes: Relate = async (rows, signal) => {
  if (!hasPermission('config.read')) return () => ({})
  const filter = `type in ${idList(rows)}`
  const configs = await readRows(`${MANAGEMENT_API_PATH}/configs`, filter, signal)
  if (configs.totalCount > configs.rows.length) return () => ({})
  return ({ id }) => ({
    configCount: configs.rows.filter(({ configTypeId }) => configTypeId === id).length,
  })
}

/** The identity that hosts a terminator, and whether the router of the terminator is online. */
const relateTerminators: Relate = async (rows, signal) => {
  const [hosted, offline] = await Promise.all([
    hasPermission('ops.read')
      ? readRows(`${FABRIC_API_PATH}/terminators`, `id in ${idList(rows)}`, signal)
      : null,
    hasPermission('router.read')
      ? readRows(`${MANAGEMENT_API_PATH}/routers`, 'connected = false', signal)
      : null,
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

const relations: Readonly<Record<string, Relate>> = {
  services: relateServices,
  configs: relateConfigs,
  'config-types': relateConfigTypes,
  terminators: relateTerminators,
}

/** Adds to each row the values of related records that the list shows. */
export async function withRelated(
  kind: Pick<ConsoleKind, 'path'>,
  page: RowPage,
  signal: AbortSignal,
): Promise<RowPage> {
  const relate = relations[kind.path]
  if (relate === undefined || page.rows.length === 0) return page
  // Errors are ignored, because a caller who may read these records may lack the permission for the
  // related ones.
  const addTo = await relate(page.rows, signal).catch(() => () => ({}))
  return { ...page, rows: page.rows.map((row) => ({ ...row, ...addTo(row) })) }
}

import { consoleApiClient, noteLeaderlessRefusal } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import { MANAGEMENT_API_PATH, type HttpMethod } from '../../../client/cluster-client.ts'
import type { Meta } from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import { buildFilter, type ListState, listRequestQuery, type RowRange } from './filters.ts'
import type { Draft } from './json-values.ts'
import { findKindAtPath } from './kinds.ts'
import type { ListFacet } from './list-facets.ts'
import { rowTitle } from './row-title.ts'

export interface RecordRow extends Draft {
  readonly id: string
}

/** One page of a list, and the total number of rows. */
export interface RowPage {
  readonly rows: readonly RecordRow[]
  readonly totalCount: number
  readonly filterableFields: readonly string[]
}

interface ListBody {
  readonly data: readonly RecordRow[]
  readonly meta: {
    readonly filterableFields?: readonly string[]
    readonly pagination?: { readonly totalCount: number }
  }
}

export function parseRowPage(body: unknown): RowPage {
  const { data, meta } = body as ListBody
  return {
    rows: data,
    totalCount: meta.pagination?.totalCount ?? data.length,
    filterableFields: meta.filterableFields ?? [],
  }
}

export async function readRowPage(
  path: string,
  state: ListState,
  fields: readonly string[],
  page: RowRange,
  signal?: AbortSignal,
  facets: readonly ListFacet[] = [],
): Promise<RowPage> {
  const usesRouters = facets.some(
    ({ name, usesOfflineRouters = false }) =>
      usesOfflineRouters && (state.facets[name] ?? '') !== '',
  )
  const offline = usesRouters ? await readRows('routers', 'connected = false', signal) : null
  const ids = offline?.rows.map(({ id }) => id) ?? []
  const query = listRequestQuery(state, fields, page, facets, ids)
  const { body } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${path}?${query}`,
    ...(signal === undefined ? {} : { signal }),
  })
  return parseRowPage(body)
}

/** Maximum rows of a request for records that a page relates to others. */
export const ROWS_MAX = 500

/** The records that match a filter, at most as many as `limit`. */
export async function readRows(
  path: string,
  filter: string,
  signal?: AbortSignal,
  limit = ROWS_MAX,
  api = MANAGEMENT_API_PATH,
): Promise<RowPage> {
  const query = new URLSearchParams({ limit: String(limit), ...(filter === '' ? {} : { filter }) })
  const { body } = await consoleApiClient.ask({
    path: `${api}/${path}?${query}`,
    ...(signal === undefined ? {} : { signal }),
  })
  return parseRowPage(body)
}

export async function readRecord(
  path: string,
  id: string,
  signal?: AbortSignal,
): Promise<{ readonly record: RecordRow; readonly etag: string | null }> {
  const { body, header } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${path}/${encodeURIComponent(id)}`,
    ...(signal === undefined ? {} : { signal }),
  })
  return { record: (body as { readonly data: RecordRow }).data, etag: header('etag') }
}

const SUGGESTIONS_MAX = 10

/**
 * The first records by name that match the typed text, which is a part of a name, an ID or role
 * attributes; and the number of all matches.
 */
export async function suggestRecords(
  path: string,
  typed: string,
  signal: AbortSignal,
): Promise<RowPage> {
  const query = new URLSearchParams({ limit: String(SUGGESTIONS_MAX), sort: 'name asc' })
  const filter = buildFilter(typed.replace(/^=/, ''), ['name'])
  if (filter !== '') query.set('filter', filter)
  const { body } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${path}?${query}`,
    signal,
  })
  return parseRowPage(body)
}

/** Titles of the first {@link NAMES_MAX} of these records, by ID; missing records are omitted. */
export async function readRecordNames(
  path: string,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const shown = ids.slice(0, NAMES_MAX)
  const filter = `id in [${shown.map((id) => JSON.stringify(id)).join(', ')}]`
  const { rows } = await readRows(path, filter, signal, NAMES_MAX)
  return new Map(rows.map((row) => [row.id, rowTitle(row)]))
}

const NAMES_MAX = 100

/** Number of records that a list of roles selects, as counted by the server. */
export async function countByRoles(
  path: string,
  chosen: readonly string[],
  semantic: string,
  signal: AbortSignal,
): Promise<number> {
  const query = new URLSearchParams({ limit: '1' })
  if (!chosen.includes('#all')) {
    for (const role of chosen) query.append('roleFilter', role)
    query.set('roleSemantic', semantic)
  }
  const { body } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${path}?${query}`,
    signal,
  })
  return parseRowPage(body).totalCount
}

/** Role attributes of a kind that contain the typed text. */
export async function suggestAttributes(
  path: string,
  typed: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lists: Readonly<Record<string, string>> = {
    identities: 'identity-role-attributes',
    services: 'service-role-attributes',
    'edge-routers': 'edge-router-role-attributes',
    'posture-checks': 'posture-check-role-attributes',
  }
  const list = lists[path]
  if (list === undefined) return []
  const query = new URLSearchParams({ limit: String(SUGGESTIONS_MAX) })
  if (typed !== '') query.set('filter', `id contains "${typed.replace(/[\\"]/g, '')}"`)
  const { body } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${list}?${query}`,
    signal,
  })
  return (body as { readonly data: readonly string[] }).data
}

/** A write request of a form. */
export interface RecordWriteRequest {
  readonly method: HttpMethod
  readonly path: string
  readonly body?: Draft
  readonly ifMatch?: string | null
}

/** @returns the ID of the created record; null if the response names none. */
export async function writeRecord({
  method,
  path,
  body,
  text,
  ifMatch,
}: Omit<RecordWriteRequest, 'body'> & {
  readonly body?: Draft | readonly Draft[]
  /** Body that is sent as plain text; set instead of `body`. */
  readonly text?: string
}): Promise<string | null> {
  try {
    const answer = await consoleApiClient.ask({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      ...(text === undefined ? {} : { text }),
      ...(ifMatch === undefined || ifMatch === null ? {} : { headers: { 'if-match': ifMatch } }),
    })
    const { data, meta } = answer.body as {
      readonly data?: { readonly id?: unknown }
      readonly meta?: Partial<Pick<Meta, 'warnings' | 'detachedFrom'>>
    }
    for (const warning of meta?.warnings ?? []) showToast(warning, 'alert')
    for (const { entity, totalCount } of meta?.detachedFrom ?? []) {
      const kind = findKindAtPath(entity.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
      if (kind === null) continue
      showToast(texts.uses.detached(texts.count(totalCount, kind.one, kind.many)), 'info')
    }
    return typeof data?.id === 'string' ? data.id : null
  } catch (error) {
    noteLeaderlessRefusal(error)
    throw error
  }
}

export function collectionApiPath(path: string): string {
  return `${MANAGEMENT_API_PATH}/${path}`
}

export function recordApiPath(path: string, id: string): string {
  return `${MANAGEMENT_API_PATH}/${path}/${encodeURIComponent(id)}`
}

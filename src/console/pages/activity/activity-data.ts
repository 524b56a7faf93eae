import { consoleApiClient } from '../../app/console-state.ts'
import { consolePath } from '../../app/navigation.ts'
import type { AccessPreviewed, AuditDetail } from '../../client/served-types.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { BY_ROUTERS, newestChanges } from './newest-changes.ts'

export type ChangedRecord = AuditDetail['changes'][number]

/** The effect that undoing an entry would have. */
export interface UndoPreview {
  readonly changes: readonly ChangedRecord[]
  readonly omittedChanges: number
  /** Null for a caller that may not read identities and services. */
  readonly access: AccessPreviewed | null
  readonly version: string
}

/** Conditions for a search in the history; '' sets no condition. */
export interface HistoryQuery {
  readonly kind: string
  /** ID of a record, or its current or a former name. */
  readonly record: string
  readonly actor: string
  readonly action: string
  /** Age in hours of the oldest entry; '' for all. */
  readonly hours: string
  /** `true`: also entries that change no record. */
  readonly all: string
}

export const emptyHistoryQuery: HistoryQuery = {
  kind: '',
  record: '',
  actor: '',
  action: '',
  hours: '',
  all: '',
}

/** Kinds with a history, by the name of their collection. */
const kindsByPath: Readonly<Record<string, string>> = {
  identities: 'identity',
  services: 'service',
  'edge-routers': 'edgeRouter',
  'transit-routers': 'transitRouter',
  routers: 'router',
  terminators: 'terminator',
  configs: 'config',
  'config-types': 'configType',
  'service-policies': 'servicePolicy',
  'edge-router-policies': 'edgeRouterPolicy',
  'service-edge-router-policies': 'serviceEdgeRouterPolicy',
  'posture-checks': 'postureCheck',
  'auth-policies': 'authPolicy',
  authenticators: 'authenticator',
  enrollments: 'enrollment',
  'external-jwt-signers': 'externalJwtSigner',
  cas: 'ca',
  'controller-settings': 'controllerSetting',
}
const pathsByKind = new Map(Object.entries(kindsByPath).map(([path, kind]) => [kind, path]))

export const historyPaths: readonly string[] = Object.keys(kindsByPath)

export function historyKindAtPath(path: string): string | null {
  return Object.hasOwn(kindsByPath, path) ? (kindsByPath[path] ?? null) : null
}

/**
 * The collection of a kind, by the name that history entries and events use for the kind; null if
 * the kind has none.
 */
export function collectionForKind(kind: string): string | null {
  if (kind === 'fabricService') return 'services'
  return pathsByKind.get(kind) ?? null
}

/** The page of a record; null if its kind has none. */
export function recordLink(kind: string, id: string): string | null {
  const path = collectionForKind(kind)
  return path === null || id === '' ? null : consolePath(path, id)
}

/**
 * Reads the newest entries that match. Unless `kind`, `record` or `all` is set, an administrator
 * does not get the changes of terminators by routers.
 * @param isAdmin whether the caller is an administrator: the API accepts `filter` only from one.
 */
export async function fetchHistory(
  { hours, ...query }: HistoryQuery,
  isAdmin: boolean,
  limit: number,
  signal: AbortSignal,
): Promise<{ readonly rows: readonly AuditDetail[]; readonly totalCount: number }> {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const isOverview = isAdmin && query.all === '' && query.kind === '' && query.record === ''
  const filter = isOverview ? [['filter', `not ${BY_ROUTERS}`]] : []
  const since = hours === '' ? [] : [['since', sinceText(Number(hours))]]
  const { data, meta } = await consoleApiClient.served('GET /edge/management/v1/history', {
    query: Object.fromEntries([...given, ...since, ...filter, ['limit', String(limit)]]) as Record<
      string,
      string
    >,
    signal,
  })
  return { rows: data, totalCount: meta.pagination?.totalCount ?? data.length }
}

export const fetchRecentChanges = async (signal: AbortSignal): Promise<readonly AuditDetail[]> =>
  (await consoleApiClient.served('GET /fabric/v1/audit', { query: newestChanges, signal })).data

function sinceText(hours: number): string {
  return new Date(Date.now() - hours * 3_600_000).toISOString()
}

function undoPath(index: number): string {
  return `${MANAGEMENT_API_PATH}/history/${index}/undo`
}

export async function previewUndo(index: number, signal: AbortSignal): Promise<UndoPreview> {
  const { body } = await consoleApiClient.ask({ path: undoPath(index), signal })
  return (body as { readonly data: UndoPreview }).data
}

/** Undoes an entry, unless a record changed after the preview. */
export async function sendUndo(index: number, version: string): Promise<void> {
  await consoleApiClient.ask({ method: 'POST', path: undoPath(index), body: { version } })
}

const undoable: ReadonlySet<string> = new Set(['create', 'replace', 'patch', 'delete'])

/** No request changes a record of this kind, so no request can undo such a change. */
const UNCHANGEABLE = 'enrollment'

/** Whether an entry may be undone; the controller decides when it previews the undo. */
export function isUndoable({ action, entity, outcome, changeState }: AuditDetail): boolean {
  const isPossible = action !== 'patch' || entity !== UNCHANGEABLE
  return outcome === 'done' && changeState === 'KEPT' && undoable.has(action) && isPossible
}

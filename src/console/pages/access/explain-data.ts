import { csvText } from '../../app/csv.ts'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import type {
  AccessExplained,
  AccessExplainedDial,
  AccessExplainedIdentity,
} from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import { buildFilter } from '../records/filters.ts'

export type AccessDirection = AccessExplainedDial

/** One page of explained pairs. */
export interface AccessRows {
  readonly rows: readonly AccessExplained[]
  readonly totalCount: number
}

export const ACCESS_PAGE_ROWS = 25

export interface AccessQuery {
  readonly identity: string
  readonly service: string
  /** True if only those pairs are listed for which a policy grants access; only for a list. */
  readonly isGranted: boolean
  /** Text that the name of the other record must contain. */
  readonly typed: string
  readonly offset: number
}

export function parseAccessQuery(query: URLSearchParams): AccessQuery {
  const offset = Number(query.get('offset') ?? '0')
  return {
    identity: query.get('identity') ?? '',
    service: query.get('service') ?? '',
    isGranted: query.get('show') !== 'all',
    typed: query.get('q') ?? '',
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0,
  }
}

/** Path and query of the Access page that shows the result of this query. */
export function accessPath({ identity, service, isGranted, typed, offset }: AccessQuery): string {
  const query = new URLSearchParams()
  if (identity !== '') query.set('identity', identity)
  if (service !== '') query.set('service', service)
  if (!isGranted) query.set('show', 'all')
  if (typed !== '') query.set('q', typed)
  if (offset > 0) query.set('offset', String(offset))
  const text = query.toString()
  return consolePath('access') + (text === '' ? '' : `?${text}`)
}

/** Path and query of the Access page for one pair. */
export function accessPairPath(identity: string, service: string): string {
  return accessPath({ identity, service, isGranted: true, typed: '', offset: 0 })
}

/**
 * Requests the explanation of one pair, or of one identity or service with all records of the other
 * kind, sorted by name.
 */
export async function fetchAccessExplanations(
  { identity, service, isGranted, typed, offset }: AccessQuery,
  signal: AbortSignal | null,
  limit = ACCESS_PAGE_ROWS,
): Promise<AccessRows> {
  const isPair = identity !== '' && service !== ''
  const listed = {
    sort: 'name asc',
    ...(isGranted ? { granted: 'true' } : {}),
    ...(typed === '' ? {} : { filter: buildFilter(typed, ['name']) }),
  }
  const { data, meta } = await consoleApiClient.served('GET /edge/management/v1/access/explain', {
    query: {
      limit: String(limit),
      offset: String(offset),
      ...(identity === '' ? {} : { identity }),
      ...(service === '' ? {} : { service }),
      ...(isPair ? {} : listed),
    },
    ...(signal === null ? {} : { signal }),
    timeoutMs: 10_000,
  })
  return { rows: data, totalCount: meta.pagination?.totalCount ?? data.length }
}

export const EXPORT_PAGE_PAIRS = 100
/**
 * Maximum pairs of an export; limited, because the controller must compute an explanation for each
 * pair.
 */
export const EXPORTED_PAIRS_MAX = 20_000

/** Pairs of a list as a CSV file. */
export function accessCsv(rows: readonly AccessExplained[]): string {
  const { access } = texts
  return csvText([
    access.exportColumns,
    ...rows.map((row) => [
      row.identity.name,
      row.identity.id,
      row.service.name,
      row.service.id,
      stateText(row.dial),
      stateText(row.bind),
      firstMissingRequirement(row)?.message ?? '',
    ]),
  ])
}

function stateText({ isReachable, isGranted }: AccessDirection): string {
  const { access } = texts
  if (isReachable) return access.reachable
  return isGranted ? access.broken : access.notGranted
}

/**
 * The first obstacle of a pair: that of a granted right that cannot be used or, if no right is
 * granted, that of dialing.
 */
export function firstMissingRequirement({
  dial,
  bind,
}: AccessExplained): AccessDirection['missing'][number] | undefined {
  const broken = [dial, bind].find(({ isGranted, isReachable }) => isGranted && !isReachable)
  if (broken !== undefined) return broken.missing[0]
  return dial.isGranted || bind.isGranted ? undefined : dial.missing[0]
}

export function recordReferenceText({
  name,
  id,
}: Pick<AccessExplainedIdentity, 'id' | 'name'>): string {
  return name === '' ? id : visibleText(name)
}

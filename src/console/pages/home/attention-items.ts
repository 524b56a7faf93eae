import { hasPermission } from '../../app/management-document.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { parseRowPage, type RowPage } from '../records/record-data.ts'
import { type FilterContext, type ListFacet, listFacets } from '../records/list-facets.ts'
import type { RecordStateName } from '../records/record-state.tsx'
import { texts } from '../../texts.ts'

/**
 * Records of one kind that need an operator's attention: those that match one option of a filter
 * choice (facet) of the kind's list, or a filter.
 */
interface Matter {
  readonly kind: string
  readonly facet: string
  readonly option: string
  /** Filter of the records; absent: that of the option. */
  readonly filter?: (nowMs: number) => string
  readonly sort: string
  /**
   * Field with the time since when, or at which, the record needs attention, shown beside the name;
   * null if there is no such field.
   */
  readonly since: string | null
  /** Text before the time in the field `since`, such as `created `. */
  readonly sincePrefix?: string
  readonly state: RecordStateName
  readonly title: (amount: number) => string
}

const { matters: titles } = texts.home

const HOUR_MS = 3_600_000

/** A time in a filter, in full seconds. */
function timeIn(ms: number): string {
  return `datetime(${new Date(ms).toISOString().replace(/\.\d+/, '')})`
}

/** In the order in which they are shown. */
const matters: readonly Matter[] = [
  {
    kind: 'edge-routers',
    facet: 'state',
    option: 'offline',
    sort: 'offlineSince desc',
    since: 'offlineSince',
    sincePrefix: titles.wentOffline,
    state: 'offline',
    title: titles.offlineRouters,
  },
  {
    kind: 'services',
    facet: 'hosts',
    option: 'none',
    sort: 'name asc',
    since: null,
    state: 'noHost',
    title: titles.unhosted,
  },
  {
    kind: 'identities',
    facet: 'state',
    option: 'locked',
    sort: 'name asc',
    since: null,
    state: 'locked',
    title: titles.locked,
  },
  {
    kind: 'external-jwt-signers',
    facet: 'certificate',
    option: 'month',
    sort: 'notAfter asc',
    since: 'notAfter',
    state: 'expiresSoon',
    title: titles.signers,
  },
  {
    kind: 'enrollments',
    facet: 'expiry',
    option: 'soon',
    // A token lives for some hours, so only one that is about to expire needs attention.
    filter: (nowMs) => `expiresAt > ${timeIn(nowMs)} and expiresAt <= ${timeIn(nowMs + HOUR_MS)}`,
    sort: 'expiresAt asc',
    since: 'expiresAt',
    state: 'expiresSoon',
    title: titles.expiring,
  },
  {
    kind: 'enrollments',
    facet: 'expiry',
    option: 'over',
    sort: 'expiresAt desc',
    since: 'expiresAt',
    state: 'expired',
    title: titles.expired,
  },
  {
    kind: 'identities',
    facet: 'seen',
    option: 'never',
    filter: (nowMs) => `lastSeenAt = null and createdAt < ${timeIn(nowMs - 7 * 24 * HOUR_MS)}`,
    sort: 'createdAt desc',
    since: 'createdAt',
    sincePrefix: titles.created,
    state: 'unused',
    title: titles.neverSeen,
  },
  {
    kind: 'identities',
    facet: 'seen',
    option: '90',
    sort: 'name asc',
    since: 'lastSeenAt',
    state: 'unused',
    title: titles.unseen,
  },
]

/** Number of records that are shown by name; the others only count in the total. */
const SHOWN = 3

export interface FoundAttentionItem extends Matter {
  readonly page: RowPage
  /** Text in the filter field of the list; '' if the option selects the records. */
  readonly typed: string
}

/** Everything that needs attention among the kinds that the caller may read. */
export async function readAttentionItems(
  signal: AbortSignal,
): Promise<readonly FoundAttentionItem[]> {
  const found = await Promise.all(
    matters.filter(({ kind }) => isReadable(kind)).map((matter) => readMatter(matter, signal)),
  )
  return found.filter(({ page }) => page.totalCount > 0)
}

async function readMatter(matter: Matter, signal: AbortSignal): Promise<FoundAttentionItem> {
  const context = filterContext()
  const own = matter.filter?.(context.nowMs)
  const filter = own ?? facetOption(matter.kind, matter.facet, matter.option).filter(context)
  const query = { limit: String(SHOWN), filter, sort: matter.sort }
  const page = await readRows(matter.kind, query, signal)
  return { ...matter, page, typed: own === undefined ? '' : `=${own}` }
}

/** Context for the filters on Home, none of which uses the routers that are offline. */
function filterContext(): FilterContext {
  return { nowMs: Date.now(), offlineRouterIds: [] }
}

function facetOption(kind: string, facet: string, option: string): ListFacet['options'][number] {
  const options = listFacets({ path: kind }).find(({ name }) => name === facet)?.options
  const found = options?.find(({ value }) => value === option)
  if (found === undefined) throw new Error(`${kind} has no facet ${facet} with ${option}`)
  return found
}

/** The number of all records of a kind, and of those in some states. */
export interface RecordCount {
  readonly kind: string
  readonly all: number
  readonly states: readonly { readonly text: string; readonly amount: number }[]
}

const counted = [
  { kind: 'identities', facet: 'state', options: ['online'] },
  { kind: 'services', facet: 'hosts', options: ['some'] },
  {
    kind: 'edge-routers',
    facet: 'state',
    options: ['online', 'offline', 'unverified', 'disabled'],
  },
  { kind: 'service-policies', facet: '', options: [] },
] as const

export async function readRecordCounts(signal: AbortSignal): Promise<readonly RecordCount[]> {
  const count = async (kind: string, filter: string | null): Promise<number> => {
    const query = { limit: '1', ...(filter === null ? {} : { filter }) }
    return (await readRows(kind, query, signal)).totalCount
  }
  return await Promise.all(
    counted
      .filter(({ kind }) => isReadable(kind))
      .map(async ({ kind, facet, options }) => {
        const states = options.map(async (option) => {
          const { text, filter } = facetOption(kind, facet, option)
          return { text, amount: await count(kind, filter(filterContext())) }
        })
        // Awaited together: if one read fails, for example because the user leaves the page, no
        // rejection of another read stays unhandled.
        const [all, known] = await Promise.all([count(kind, null), Promise.all(states)])
        return { kind, all, states: known }
      }),
  )
}

async function readRows(
  kind: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<RowPage> {
  const path = `${MANAGEMENT_API_PATH}/${kind}?${new URLSearchParams(query)}`
  return parseRowPage((await consoleApiClient.ask({ path, signal })).body)
}

function isReadable(path: string): boolean {
  const kind = findKindAtPath(path)
  return kind !== null && hasPermission(`${kind.permission}.read`)
}

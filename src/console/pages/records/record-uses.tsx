import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { sortByName } from '../../app/name-order.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { quoteFilterText } from './filters.ts'
import { findKindAtPath } from './kinds.ts'
import { parseRowPage, type RowPage } from './record-data.ts'
import { RecordLinks } from './related-lists.tsx'
import { rowTitle } from './row-title.ts'

/** How a deletion affects the records that use the deleted record. */
type Effect = 'changed' | 'deleted' | 'kept'

interface Use {
  /** The kind of the records. */
  readonly kind: string
  readonly effect: Effect
  /** Page that lists these records, with the filter in `query`. */
  readonly path: (id: string) => string
  readonly filter?: (quotedId: string) => string
}

/**
 * For each kind, where its records may be used. `kept`: the controller refuses the deletion while
 * such records exist.
 */
const uses: Readonly<Record<string, readonly Use[]>> = {
  configs: [
    { kind: 'services', effect: 'changed', path: (id) => `configs/${id}/services` },
    {
      kind: 'edge-routers',
      effect: 'changed',
      path: () => 'edge-routers',
      filter: (id) => `anyOf(configs) = ${id}`,
    },
  ],
  'config-types': [{ kind: 'configs', effect: 'kept', path: (id) => `config-types/${id}/configs` }],
  'auth-policies': [
    {
      kind: 'identities',
      effect: 'kept',
      path: () => 'identities',
      filter: (id) => `authPolicyId = ${id}`,
    },
  ],
  cas: [
    {
      kind: 'enrollments',
      effect: 'deleted',
      path: () => 'enrollments',
      filter: (id) => `caId = ${id}`,
    },
  ],
  services: [
    { kind: 'terminators', effect: 'deleted', path: (id) => `services/${id}/terminators` },
  ],
  'edge-routers': [
    {
      kind: 'terminators',
      effect: 'deleted',
      path: () => 'terminators',
      filter: (id) => `router = ${id}`,
    },
  ],
  identities: [
    { kind: 'authenticators', effect: 'deleted', path: (id) => `identities/${id}/authenticators` },
  ],
}

const SHOWN = 8

/** Records of one kind that use another record. */
interface FoundUse {
  readonly use: Use
  readonly page: RowPage
}

/** The records that use a given record, by kind; kinds without any are omitted. */
export async function findRecordUses(
  collection: string,
  id: string,
  signal: AbortSignal,
): Promise<readonly FoundUse[]> {
  const found = await Promise.all(
    (uses[collection] ?? []).map(async (use) => {
      const query = new URLSearchParams({ limit: String(SHOWN) })
      if (use.filter !== undefined) query.set('filter', use.filter(quoteFilterText(id)))
      const path = `${MANAGEMENT_API_PATH}/${use.path(encodeURIComponent(id))}?${query}`
      return { use, page: parseRowPage((await consoleApiClient.ask({ path, signal })).body) }
    }),
  )
  return found.filter(({ page }) => page.totalCount > 0)
}

/** True if one of these uses makes the controller refuse the deletion. */
export function blocksDeletion(found: readonly FoundUse[] | null): boolean {
  return found?.some(({ use }) => use.effect === 'kept') === true
}

export function useRecordUses(collection: string, id: string) {
  return useLoadedData(`uses/${collection}/${id}`, (signal) =>
    findRecordUses(collection, id, signal),
  )
}

/** Lists the records that a deletion changes or deletes, or because of which it is refused. */
export function RecordUses({ loaded }: { readonly loaded: ReturnType<typeof useRecordUses> }) {
  const { value: found } = loaded.data
  if (loaded.error.value !== null) return <FailureNotice error={loaded.error.value} />
  if (found === null || found.length === 0) return null
  return (
    <>
      {found.map(({ use, page }) => {
        const kind = findKindAtPath(use.kind)
        const amount = texts.count(page.totalCount, kind?.one ?? use.kind, kind?.many ?? use.kind)
        return (
          <Notice key={use.kind} tone="warn">
            {texts.uses[use.effect](amount)}
            <ul class="uses">
              <RecordLinks path={use.kind} rows={sortByName(page.rows, rowTitle)} />
              {page.totalCount > page.rows.length ? (
                <li class="faint">{texts.preview.more(page.totalCount - page.rows.length)}</li>
              ) : null}
            </ul>
          </Notice>
        )
      })}
    </>
  )
}

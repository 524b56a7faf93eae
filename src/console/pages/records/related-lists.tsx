import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { sortByName } from '../../app/name-order.ts'
import { consolePath } from '../../app/navigation.ts'
import { Button } from '../../controls/button.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { formatListState, quoteFilterText } from './filters.ts'
import { fieldLabel } from './form-model.ts'
import { type ConsoleKind, findKindAtPath, kinds } from './kinds.ts'
import { type RecordRow, type RowPage, readRowPage } from './record-data.ts'
import { rowTitle } from './row-title.ts'

/** Records of each list that are shown at first. */
const SHOWN = 8
/** Records of a list that are shown on request. */
const SHOWN_MAX = 100
const NO_FILTER = { typed: '', sort: '', isDescending: false, offset: 0, facets: {} } as const

/** Records of one kind that are related to a record. */
interface RelatedSource {
  /** Name of their collection. */
  readonly name: string
  /** List that has them, with the filter in `filter`. */
  readonly path: string
  readonly filter: string
}

/** Related records that the API returns only in the list of their kind. */
const filtered: Readonly<Record<string, (id: string) => Omit<RelatedSource, 'path'>>> = {
  'auth-policies': (id) => ({
    name: 'identities',
    filter: `=authPolicyId = ${quoteFilterText(id)}`,
  }),
}

function sourcesOf(kind: ConsoleKind, id: string, lists: readonly string[]): RelatedSource[] {
  const more = filtered[kind.path]?.(id)
  const own = lists
    .filter((name) => findKindAtPath(name) !== null)
    .map((name) => ({ name, path: `${kind.path}/${encodeURIComponent(id)}/${name}`, filter: '' }))
  return more === undefined ? own : [...own, { ...more, path: more.name }]
}

/** The field by which the records of a collection are sorted: that of their list, or the name. */
function sortOf(name: string): string {
  const { sort = '' } = findKindAtPath(name) ?? {}
  return sort === '' ? 'name' : sort
}

async function read(
  { name, path, filter }: RelatedSource,
  limit: number,
  signal: AbortSignal,
): Promise<RowPage> {
  const state = { ...NO_FILTER, typed: filter, sort: sortOf(name) }
  const page = await readRowPage(path, state, [], { limit, offset: 0 }, signal)
  return { ...page, rows: sortByName(page.rows, rowTitle) }
}

/** The page of a record, or the list of several. */
function hrefOf(name: string, rows: readonly RecordRow[]): string {
  const [first] = rows
  if (first === undefined || rows.length > 1) {
    const ids = rows.map(({ id }) => quoteFilterText(id)).join(', ')
    return consolePath(name) + formatListState({ ...NO_FILTER, typed: `=id in [${ids}]` })
  }
  return consolePath(name, first.id)
}

/** Records that refer to this record or belong to it, by kind. */
export function RelatedLists(props: {
  readonly kind: ConsoleKind
  readonly id: string
  readonly lists: readonly string[]
}) {
  const { kind, id, lists } = props
  const sources = sourcesOf(kind, id, lists)
  const loaded = useLoadedData(`${kind.path}/${id} ${lists.join(' ')}`, async (signal) => {
    const pages = await Promise.allSettled(sources.map((one) => read(one, SHOWN, signal)))
    return sources.map((source, at) => ({ source, page: pages[at] }))
  })
  if (sources.length === 0) return null
  const found = (loaded.data.value ?? []).flatMap(({ source, page }) =>
    page?.status === 'fulfilled' && page.value.totalCount > 0 ? [{ source, page: page.value }] : [],
  )
  if (loaded.data.value !== null && found.length === 0) return null
  return (
    <section class="panel" aria-labelledby="related" aria-busy={loaded.data.value === null}>
      <div class="panel-head">
        <h2 id="related">{texts.record.related}</h2>
      </div>
      {loaded.data.value === null ? (
        <div class="panel-body stack">
          <Skeleton width="60%" />
          <Skeleton width="40%" />
        </div>
      ) : null}
      <dl class="related">
        {found.map(({ source, page }) => (
          <Related key={source.name} source={source} first={page} />
        ))}
      </dl>
    </section>
  )
}

function manyOf(name: string): string {
  return kinds.find((one) => one.path === name)?.many ?? fieldLabel(name)
}

/** Rows with the same title, such as several terminators of a service at a router. */
function groupByTitle(rows: readonly RecordRow[]): ReadonlyMap<string, readonly RecordRow[]> {
  const groups = new Map<string, RecordRow[]>()
  for (const row of rows) {
    const title = rowTitle(row)
    groups.set(title, [...(groups.get(title) ?? []), row])
  }
  return groups
}

/** Links to records; those with the same title are one link to a list of them. */
export function RecordLinks(props: { readonly path: string; readonly rows: readonly RecordRow[] }) {
  return [...groupByTitle(props.rows)].map(([title, rows]) => (
    <li key={title}>
      <a href={hrefOf(props.path, rows)}>{title}</a>
      {rows.length === 1 ? null : <span class="faint"> {texts.record.times(rows.length)}</span>}
    </li>
  ))
}

function Related(props: { readonly source: RelatedSource; readonly first: RowPage }) {
  const { source, first } = props
  const { name } = source
  const all = useSignal<RowPage | null>(null)
  const error = useSignal<unknown>(null)
  const page = all.value ?? first
  const showAll = (): void => {
    read(source, SHOWN_MAX, new AbortController().signal)
      .then((found) => (all.value = found))
      .catch((failure: unknown) => (error.value = failure))
  }
  return (
    <div>
      <dt>
        {manyOf(name)} <span class="count">{page.totalCount.toLocaleString('en')}</span>
      </dt>
      <dd>
        <ul class="related-rows">
          <RecordLinks path={name} rows={page.rows} />
          {page.totalCount > page.rows.length ? (
            <li>
              {all.value === null ? (
                <Button kind="quiet" onClick={showAll}>
                  {texts.record.showAll(page.totalCount, SHOWN_MAX)}
                </Button>
              ) : (
                <span class="faint">{texts.picker.count(page.rows.length, page.totalCount)}</span>
              )}
            </li>
          ) : null}
        </ul>
        <FailureNotice error={error.value} />
      </dd>
    </div>
  )
}

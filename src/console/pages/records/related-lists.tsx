import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { Button } from '../../controls/button.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { fieldLabel } from './form-model.ts'
import { type ConsoleKind, findKindAtPath, kinds } from './kinds.ts'
import { type RowPage, readRowPage } from './record-data.ts'
import { rowTitle } from './row-title.ts'

/** Records of each list that are shown at first. */
const SHOWN = 8
/** Records of a list that are shown on request. */
const SHOWN_MAX = 100
const NO_FILTER = { typed: '', sort: '', isDescending: false, offset: 0, facets: {} } as const

async function read(path: string, limit: number, signal: AbortSignal): Promise<RowPage> {
  return await readRowPage(path, NO_FILTER, [], signal, [], { limit, offset: 0 })
}

/** Records that refer to this record or belong to it, by kind. */
export function RelatedLists(props: {
  readonly kind: ConsoleKind
  readonly id: string
  readonly lists: readonly string[]
}) {
  const { kind, id, lists } = props
  const path = `${kind.path}/${encodeURIComponent(id)}`
  const names = lists.filter((name) => findKindAtPath(name) !== null)
  const loaded = useLoadedData(`${path} ${names.join(' ')}`, async (signal) => {
    const pages = await Promise.allSettled(
      names.map((name) => read(`${path}/${name}`, SHOWN, signal)),
    )
    return names.map((name, at) => ({ name, page: pages[at] }))
  })
  if (names.length === 0) return null
  const found = (loaded.data.value ?? []).flatMap(({ name, page }) =>
    page?.status === 'fulfilled' ? [{ name, page: page.value }] : [],
  )
  const empty = found.filter(({ page }) => page.totalCount === 0).map(({ name }) => manyOf(name))
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
        {found
          .filter(({ page }) => page.totalCount > 0)
          .map(({ name, page }) => (
            <Related key={name} name={name} path={`${path}/${name}`} first={page} />
          ))}
      </dl>
      {empty.length === 0 ? null : <p class="related-note">{texts.record.noRelated(empty)}</p>}
    </section>
  )
}

function manyOf(name: string): string {
  return kinds.find((one) => one.path === name)?.many ?? fieldLabel(name)
}

function Related(props: { readonly name: string; readonly path: string; readonly first: RowPage }) {
  const { name, path, first } = props
  const all = useSignal<RowPage | null>(null)
  const error = useSignal<unknown>(null)
  const page = all.value ?? first
  const showAll = (): void => {
    read(path, SHOWN_MAX, new AbortController().signal)
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
          {page.rows.map((row) => (
            <li key={row.id}>
              <a href={consolePath(name, row.id)}>{rowTitle(row)}</a>
            </li>
          ))}
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

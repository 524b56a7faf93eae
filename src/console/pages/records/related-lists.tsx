import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { fieldLabel } from './form-model.ts'
import { type Kind, kindAt, kinds } from './kinds.ts'
import { type RowPage, readRowPage } from './record-data.ts'

/**
 * Lists of records that refer to this record or belong to it. Each list is loaded when it is
 * opened.
 */
export function RelatedLists(props: {
  readonly kind: Kind
  readonly id: string
  readonly lists: readonly string[]
}) {
  const { kind, id, lists } = props
  const shown = lists.filter((name) => kindAt(name) !== null)
  if (shown.length === 0) return null
  return (
    <section class="panel" aria-labelledby="related">
      <div class="panel-head">
        <h2 id="related">{texts.record.related}</h2>
      </div>
      {shown.map((name) => (
        <Related key={name} name={name} path={`${kind.path}/${encodeURIComponent(id)}/${name}`} />
      ))}
    </section>
  )
}

function Related({ name, path }: { readonly name: string; readonly path: string }) {
  const isOpen = useSignal(false)
  return (
    <details class="related" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>{kinds.find((one) => one.path === name)?.many ?? fieldLabel(name)}</summary>
      {isOpen.value ? <RelatedRows name={name} path={path} /> : null}
    </details>
  )
}

const NO_FILTER = { typed: '', sort: '', isDescending: false, offset: 0, facets: {} } as const

function RelatedRows({ name, path }: { readonly name: string; readonly path: string }) {
  const loaded = useLoadedData<RowPage>(path, (signal) => readRowPage(path, NO_FILTER, [], signal))
  const { value: page } = loaded.data
  if (loaded.error.value !== null) {
    return (
      <div class="panel-body">
        <FailureNotice error={loaded.error.value} />
      </div>
    )
  }
  if (page === null) {
    return (
      <div class="panel-body">
        <Skeleton />
      </div>
    )
  }
  if (page.rows.length === 0) return <p class="related-note">{texts.record.noRelated}</p>
  return (
    <>
      <ul class="related-rows">
        {page.rows.map((row) => (
          <li key={row.id}>
            <a href={consolePath(name, row.id)}>{visibleText(String(row['name'] ?? row.id))}</a>
          </li>
        ))}
      </ul>
      {page.totalCount > page.rows.length ? (
        <p class="related-note">{texts.picker.count(page.rows.length, page.totalCount)}</p>
      ) : null}
    </>
  )
}

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { loadCaller, managementDocument, mayDo } from '../../app/api-documents.ts'
import { Failure, FailureNotice } from '../../app/failure.tsx'
import { type Loaded, useLoaded } from '../../app/loaded.ts'
import { goTo, pathTo, place } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { feed, isReadOnly } from '../../app/services.ts'
import { onKey } from '../../app/shortcuts.ts'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Empty, Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { Cell } from './cell.tsx'
import { labelOf } from './form-model.ts'
import { type ListState, listStateOf, PAGE_ROWS, searchOf } from './filters.ts'
import type { Kind } from './kinds.ts'
import { type RecordRow, readPage, type RowPage } from './record-data.ts'

const REFRESH_MS = 10_000
const TYPING_MS = 250

interface ListPageData {
  readonly page: RowPage
  readonly columns: readonly string[]
  readonly hasNames: boolean
  readonly mayCreate: boolean
  readonly canCreate: boolean
}

async function load(kind: Kind, state: ListState, signal: AbortSignal): Promise<ListPageData> {
  const [served] = await Promise.all([managementDocument(), loadCaller()])
  const shown = Object.keys(served.operation('get', `/${kind.path}`)?.row?.properties ?? {})
  const hasNames = shown.includes('name')
  const creation = served.operation('post', `/${kind.path}`)
  return {
    page: await readPage(kind.path, state, hasNames ? ['name'] : shown, signal),
    columns: kind.columns.filter((name) => shown.includes(name)),
    hasNames,
    canCreate: creation !== null,
    mayCreate: creation !== null && mayDo(creation.permission),
  }
}

/** All records of a kind: filtered, sorted and cut into pages by the server. */
export function ListPage({ kind }: { readonly kind: Kind }) {
  const { list } = texts
  const state = listStateOf(place.value.query)
  const loaded = useLoaded(
    `${kind.path}${searchOf(state)}`,
    (signal) => load(kind, state, signal),
    REFRESH_MS,
  )
  useEffect(() => loaded.reload(), [feed.gaps.value])
  const { value: data } = loaded.data
  const last = useRef<ListPageData | null>(null)
  if (data !== null) last.current = data
  const shown = data ?? last.current
  const create = (): void => goTo(pathTo(kind.path, 'new'))
  useEffect(() => onKey('n', create), [kind])
  const refused = isReadOnly.value
    ? texts.banner.refused
    : shown?.mayCreate === false
      ? texts.failure.notAllowed
      : null
  return (
    <>
      <PageHead title={kind.many} lead={kind.what}>
        {shown?.canCreate === true ? (
          <Button icon="plus" kind="primary" refused={refused} onClick={create}>
            {list.create(kind.one)}
          </Button>
        ) : null}
      </PageHead>
      <FilterBar key={kind.path} kind={kind} state={state} total={data?.page.totalCount ?? null} />
      {shown === null && loaded.error.value !== null ? (
        <Failure error={loaded.error.value} retry={loaded.reload} />
      ) : (
        <>
          <FailureNotice error={loaded.error.value} />
          <Rows kind={kind} state={state} shown={shown} loaded={loaded} />
        </>
      )}
    </>
  )
}

function FilterBar(props: {
  readonly kind: Kind
  readonly state: ListState
  readonly total: number | null
}) {
  const { kind, state, total } = props
  const { list } = texts
  const input = useRef<HTMLInputElement>(null)
  const typed = useSignal(state.typed)
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  useEffect(
    () =>
      onKey('/', () => {
        input.current?.focus()
        input.current?.select()
      }),
    [],
  )
  return (
    <div class="filter">
      <div class="filter-input">
        <Icon name="search" />
        <input
          ref={input}
          class="input"
          type="search"
          aria-label={list.filter(kind.many)}
          placeholder={list.filterPlaceholder}
          value={typed.value}
          spellcheck={false}
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value
            if (timer.current !== null) clearTimeout(timer.current)
            timer.current = setTimeout(() => {
              const next = { ...state, typed: typed.value, offset: 0 }
              goTo(pathTo(kind.path) + searchOf(next), { replaces: true })
            }, TYPING_MS)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
          }}
        />
      </div>
      <span class="faint small" role="status">
        {total === null ? '' : list.total(total, state.typed !== '')}
      </span>
    </div>
  )
}

function Rows(props: {
  readonly kind: Kind
  readonly state: ListState
  readonly shown: ListPageData | null
  readonly loaded: Loaded<ListPageData>
}) {
  const { kind, state, shown } = props
  const { list } = texts
  const at = useSignal(-1)
  const rows = shown?.page.rows ?? []
  useEffect(() => {
    const step = (by: number) => (): void => {
      at.value = Math.min(rows.length - 1, Math.max(0, at.value + by))
      document.querySelectorAll('.table tbody tr')[at.value]?.scrollIntoView({ block: 'nearest' })
    }
    const open = (): void => {
      const row = rows[at.value]
      if (row !== undefined) goTo(pathTo(kind.path, row.id))
    }
    const undo = [onKey('j', step(1)), onKey('k', step(-1)), onKey('Enter', open), onKey('e', open)]
    return () => undo.forEach((one) => one())
  }, [rows, kind])
  if (shown !== null && rows.length === 0) {
    return (
      <div class="panel">
        <Empty icon={kind.icon} title={state.typed === '' ? list.none(kind.many) : list.noMatch}>
          <p>{state.typed === '' ? kind.what : list.noMatchWhat}</p>
          {state.typed === '' ? null : (
            <Button onClick={() => goTo(pathTo(kind.path))}>{list.clear}</Button>
          )}
        </Empty>
      </div>
    )
  }
  return (
    <section class="panel" aria-label={kind.many} aria-busy={shown === null}>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table">
          <Head kind={kind} state={state} shown={shown} />
          <tbody>
            {shown === null
              ? [0, 1, 2, 3, 4].map((key) => (
                  <tr key={key}>
                    <td>
                      <Skeleton width="60%" />
                    </td>
                  </tr>
                ))
              : rows.map((row, index) => (
                  <Row key={row.id} kind={kind} row={row} shown={shown} isAt={index === at.value} />
                ))}
          </tbody>
        </table>
      </div>
      <Pages kind={kind} state={state} totalCount={shown?.page.totalCount ?? 0} />
    </section>
  )
}

function Head(props: {
  readonly kind: Kind
  readonly state: ListState
  readonly shown: ListPageData | null
}) {
  const { kind, state, shown } = props
  const sortable = new Set(shown?.page.filterableFields ?? [])
  const first = shown?.hasNames === false ? 'id' : 'name'
  return (
    <thead>
      <tr>
        {[first, ...(shown?.columns ?? []), 'createdAt'].map((name) => (
          <Header
            key={name}
            name={name}
            kind={kind}
            state={state}
            isSortable={sortable.has(name) && !name.endsWith('Roles')}
          />
        ))}
      </tr>
    </thead>
  )
}

function Header(props: {
  readonly name: string
  readonly kind: Kind
  readonly state: ListState
  readonly isSortable: boolean
}) {
  const { name, kind, state, isSortable } = props
  const isSorted = state.sort === name
  const label = kind.fields[name]?.label ?? labelOf(name.replace(/Id$/, ''))
  if (!isSortable) return <th scope="col">{label}</th>
  const next = { ...state, sort: name, isDescending: isSorted && !state.isDescending, offset: 0 }
  const sorted = state.isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" aria-sort={isSorted ? sorted : 'none'}>
      <button
        type="button"
        class="sort"
        onClick={() => goTo(pathTo(kind.path) + searchOf(next), { replaces: true })}
      >
        {label}
        {isSorted ? <Icon name={state.isDescending ? 'sortDown' : 'sortUp'} size={12} /> : null}
      </button>
    </th>
  )
}

function Row(props: {
  readonly kind: Kind
  readonly row: RecordRow
  readonly shown: ListPageData
  readonly isAt: boolean
}) {
  const { kind, row, shown, isAt } = props
  const { name } = row as { readonly name?: unknown }
  const title = typeof name === 'string' && name !== '' ? name : row.id
  return (
    <tr class={isAt ? 'at' : ''}>
      <th scope="row">
        <a class="clip" href={pathTo(kind.path, row.id)}>
          {title}
        </a>
      </th>
      {shown.columns.map((column) => (
        <td key={column}>
          <Cell name={column} value={row[column]} />
        </td>
      ))}
      <td>
        <Time at={String(row['createdAt'] ?? '')} />
      </td>
    </tr>
  )
}

function Pages(props: {
  readonly kind: Kind
  readonly state: ListState
  readonly totalCount: number
}) {
  const { kind, state, totalCount } = props
  const { list } = texts
  if (totalCount <= PAGE_ROWS && state.offset === 0) return null
  const go = (offset: number) => (): void =>
    goTo(pathTo(kind.path) + searchOf({ ...state, offset: Math.max(0, offset) }))
  const isFirst = state.offset === 0
  const isLast = state.offset + PAGE_ROWS >= totalCount
  return (
    <nav class="pages" aria-label={list.pages}>
      <span class="faint small">{list.range(state.offset, PAGE_ROWS, totalCount)}</span>
      <Button refused={isFirst ? list.first : null} onClick={go(state.offset - PAGE_ROWS)}>
        {list.previous}
      </Button>
      <Button refused={isLast ? list.last : null} onClick={go(state.offset + PAGE_ROWS)}>
        {list.next}
      </Button>
    </nav>
  )
}

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { loadCaller, managementDocument, hasPermission } from '../../app/api-documents.ts'
import { ApiProblem } from '../../../client/problem.ts'
import { Failure, FailureNotice, failureText } from '../../app/failure.tsx'
import { useLoaded } from '../../app/loaded.ts'
import { goTo, pathTo, place } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { feed, isReadOnly } from '../../app/services.ts'
import { registerKey } from '../../app/shortcuts.ts'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { firstRowToLoad, type ListState, parseListState, formatListState } from './filters.ts'
import type { Kind } from './kinds.ts'
import { readPage } from './record-data.ts'
import { type ListPageData, Rows } from './record-rows.tsx'

const REFRESH_MS = 10_000
const TYPING_MS = 250

async function load(kind: Kind, state: ListState, signal: AbortSignal): Promise<ListPageData> {
  const [served] = await Promise.all([managementDocument(), loadCaller()])
  const shown = Object.keys(served.operation('get', `/${kind.path}`)?.row?.properties ?? {})
  const hasNames = shown.includes('name')
  const creation = served.operation('post', `/${kind.path}`)
  return {
    firstRow: firstRowToLoad(state),
    page: await readPage(kind.path, state, hasNames ? ['name'] : shown, signal),
    columns: kind.columns.filter((name) => shown.includes(name)),
    hasNames,
    canCreate: creation !== null,
    mayCreate: creation !== null && hasPermission(creation.permission),
  }
}

/** All records of a kind: filtered and sorted by the server, and read where they are in sight. */
export function ListPage({ kind }: { readonly kind: Kind }) {
  const { list } = texts
  const state = parseListState(place.value.query)
  const loaded = useLoaded(
    `${kind.path}${formatListState(state)}`,
    (signal) => load(kind, state, signal),
    REFRESH_MS,
  )
  useEffect(() => loaded.reload(), [feed.gaps.value])
  const { value: data } = loaded.data
  const last = useRef<ListPageData | null>(null)
  if (data !== null) last.current = data
  const shown = data ?? last.current
  const create = (): void =>
    goTo(kind.wizard === null ? pathTo(kind.path, 'new') : pathTo('wizards', kind.wizard))
  useEffect(() => registerKey('n', create), [kind])
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
          <ListFailure error={loaded.error.value} fields={shown?.page.filterableFields ?? []} />
          {/* Rows of an earlier filter would pass for those of this one. */}
          <div class={data === null && loaded.error.value !== null ? 'outdated' : ''}>
            <Rows key={kind.path} kind={kind} state={state} shown={shown} />
          </div>
        </>
      )}
    </>
  )
}

function ListFailure({
  error,
  fields,
}: {
  readonly error: unknown
  readonly fields: readonly string[]
}) {
  const { list } = texts
  const isOfFilter =
    error instanceof ApiProblem &&
    ['INVALID_FILTER', 'INVALID_SORT_IDENTIFIER'].includes(error.code)
  if (!isOfFilter) return <FailureNotice error={error} />
  return (
    <Notice tone="bad">
      {failureText(error)}. {list.filterFields(fields)}
    </Notice>
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
      registerKey('/', () => {
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
              goTo(pathTo(kind.path) + formatListState(next), { replaces: true })
            }, TYPING_MS)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
          }}
        />
      </div>
      <span class="faint small" role="status">
        {total === null || (total === 0 && state.typed === '')
          ? ''
          : list.total(total, state.typed !== '')}
      </span>
    </div>
  )
}

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import {
  currentCaller,
  hasPermission,
  loadCaller,
  managementDocument,
} from '../../app/management-document.ts'
import { ApiRefusalError } from '../../../client/client-errors.ts'
import { Failure, FailureNotice, failureText } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { sortByName } from '../../app/name-order.ts'
import { navigateTo, consolePath, currentPage } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { eventFeed, isReadOnly } from '../../app/console-state.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { registerKey } from '../../app/shortcuts.ts'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import {
  chosenOption,
  isFiltered,
  type ListState,
  parseListState,
  formatListState,
  withUsualSort,
} from './filters.ts'
import { isObject } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import { columnLabel } from './form-model.ts'
import { FieldCell } from './record-cell.tsx'
import { availableColumns, chosenColumns, ColumnChoice, uniformColumns } from './list-columns.tsx'
import {
  ActiveFilters,
  BulkActionBar,
  Facets,
  ListExportButtons,
  type Selection,
} from './list-tools.tsx'
import { listFacets } from './list-facets.ts'
import { withRelated } from './list-relations.ts'
import { readRowPage, type RecordRow, type RowPage } from './record-data.ts'
import { rowTitle } from './row-title.ts'
import { rowRange } from './row-window.ts'
import { type ListPageData, type LoadedList, RecordTable } from './record-rows.tsx'

const REFRESH_MS = 10_000
const TYPING_MS = 250

/** Fields with the ID of a record, in whose place the list shows the name of that record. */
const sortedByNames: ReadonlySet<string> = new Set(['service', 'identity'])

/** Sorts by names what the controller has sorted by IDs; only a list that is loaded completely. */
function inOrderOfNames(state: ListState, page: RowPage): RowPage {
  if (!sortedByNames.has(state.sort) || page.rows.length < page.totalCount) return page
  const hostName = ({ host }: RecordRow): string => (isObject(host) ? String(host['name']) : '')
  const rows = sortByName(page.rows, (row) => `${rowTitle(row)} ${hostName(row)}`)
  return { ...page, rows: state.isDescending ? rows.toReversed() : rows }
}

async function load(kind: ConsoleKind, state: ListState, signal: AbortSignal): Promise<LoadedList> {
  const [served] = await Promise.all([managementDocument(), loadCaller()])
  const properties = served.operation('get', `/${kind.path}`)?.row?.properties ?? {}
  const shown = Object.keys(properties)
  const hasNames = shown.includes('name')
  const creation = served.operation('post', `/${kind.path}`)
  const range = rowRange(state)
  return {
    firstRow: range.offset,
    page: inOrderOfNames(
      state,
      await withRelated(
        kind,
        await readRowPage(
          kind.path,
          state,
          hasNames ? ['name'] : shown,
          range,
          signal,
          listFacets(kind),
        ),
        signal,
      ),
    ),
    fields: hasNames ? ['name'] : shown,
    hasAttributes:
      served.operation('patch', `/${kind.path}/{id}`)?.body?.properties?.['roleAttributes'] !==
        undefined && hasPermission(`${kind.permission}.update`),
    canDelete:
      served.operation('delete', `/${kind.path}/{id}`) !== null &&
      hasPermission(`${kind.permission}.delete`),
    available: availableColumns(kind, properties),
    hasNames,
    canCreate: creation !== null,
    mayCreate: creation !== null && hasPermission(creation.permission),
  }
}

/**
 * All records of a kind; the server filters and sorts them, and rows are loaded when they become
 * visible.
 */
export function ListPage({ kind }: { readonly kind: ConsoleKind }) {
  const { list } = texts
  const state = withUsualSort(parseListState(currentPage.value.query), kind)
  const loaded = useLoadedData(
    `${kind.path}${formatListState(state)}`,
    (signal) => load(kind, state, signal),
    REFRESH_MS,
  )
  useEffect(() => loaded.reload(), [eventFeed.gaps.value])
  const { value: data } = loaded.data
  const last = useRef<LoadedList | null>(null)
  if (data !== null) last.current = data
  const latest = data ?? last.current
  const columns = latest === null ? [] : chosenColumns(kind, latest.available)
  const uniform = latest === null ? [] : uniformColumns(kind, latest.page, columns)
  const shown: ListPageData | null =
    latest === null
      ? null
      : { ...latest, columns: columns.filter((name) => !uniform.includes(name)) }
  // False while the rows of an earlier filter are being replaced, so that the filter field stays on
  // the page and keeps the focus.
  const isEmpty = data?.page.totalCount === 0 && !isFiltered(state)
  const selection = useSelection(kind)
  const isSelecting = selection.value.size > 0
  const create = (): void =>
    navigateTo(
      kind.wizard === null ? consolePath(kind.path, 'new') : consolePath('wizards', kind.wizard),
    )
  useEffect(() => registerKey('n', create), [kind])
  // While the list is being loaded, the known permissions of the user decide, so that the button
  // does not move the list later.
  const hasCreation =
    shown === null
      ? loaded.error.value === null &&
        currentCaller.value !== null &&
        hasPermission(`${kind.permission}.create`)
      : shown.canCreate && shown.mayCreate
  const refused = isReadOnly.value
    ? texts.banner.refused
    : shown?.mayCreate === false
      ? texts.failure.notAllowed
      : null
  return (
    <>
      <PageHead title={kind.many} lead={kind.what}>
        {hasCreation && !isEmpty ? (
          <Button icon="plus" kind="primary" refused={refused} onClick={create}>
            {list.create(kind.one)}
          </Button>
        ) : null}
      </PageHead>
      <div class={isSelecting ? 'toolbar selecting' : 'toolbar'}>
        {isEmpty ? null : (
          <FilterBar
            key={`${kind.path} ${state.typed.startsWith('#') ? state.typed : ''}`}
            kind={kind}
            state={state}
            shown={shown}
            total={data?.page.totalCount ?? null}
            columns={columns}
            uniform={uniform}
          />
        )}
        {shown === null ? null : (
          <BulkActionBar
            kind={kind}
            selection={selection}
            page={shown.page}
            hasAttributes={shown.hasAttributes}
            canDelete={shown.canDelete}
            onDone={loaded.reload}
          />
        )}
      </div>
      <ActiveFilters kind={kind} state={state} />
      {shown === null && loaded.error.value !== null ? (
        <Failure error={loaded.error.value} retry={loaded.reload} />
      ) : (
        <>
          <ListFailure error={loaded.error.value} fields={shown?.page.filterableFields ?? []} />
          {/* After an error, the rows are marked as outdated: otherwise rows for an earlier filter would look like rows for the current filter. */}
          <div class={data === null && loaded.error.value !== null ? 'outdated' : ''}>
            <RecordTable
              key={kind.path}
              kind={kind}
              state={state}
              shown={shown}
              selection={selection}
              creation={{ refused, onCreate: create }}
            />
          </div>
        </>
      )}
    </>
  )
}

/** Selected records of one kind; a row that is loaded again replaces its older version. */
function useSelection(kind: ConsoleKind): Selection {
  const selection = useSignal<ReadonlyMap<string, RecordRow>>(new Map())
  useEffect(() => {
    selection.value = new Map()
  }, [kind])
  return selection
}

/** The fault of a filter as a sentence; the controller names an unknown field as a symbol. */
function filterFaultText(text: string): string {
  const [, field] = /^unknown symbol (\S+)$/.exec(text) ?? []
  return field === undefined ? `${text}.` : texts.list.noField(field)
}

/** Fields that every kind has come last. */
function inOrderOfUse(fields: readonly string[]): readonly string[] {
  const common = ['id', 'createdAt', 'updatedAt', 'tags', 'isSystem']
  const isCommon = (field: string): boolean => common.includes(field)
  return [...fields.filter((one) => !isCommon(one)), ...fields.filter(isCommon)]
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
    error instanceof ApiRefusalError &&
    ['INVALID_FILTER', 'INVALID_SORT_IDENTIFIER'].includes(error.code)
  if (!isOfFilter) return <FailureNotice error={error} />
  return (
    <div class="filter-fault">
      <Notice tone="bad">
        {filterFaultText(failureText(error))} {list.filterFields(inOrderOfUse(fields))}{' '}
        {list.filterExample}
      </Notice>
    </div>
  )
}

/** Whether a filter hides some records, also one that the list starts with. */
function isNarrowed(kind: ConsoleKind, state: ListState): boolean {
  const facets = listFacets(kind)
  return isFiltered(state) || facets.some((facet) => chosenOption(state, facet) !== '')
}

function FilterBar(props: {
  readonly kind: ConsoleKind
  readonly state: ListState
  readonly shown: ListPageData | null
  readonly total: number | null
  /** The columns that the user has chosen, and those of them that the table leaves out. */
  readonly columns: readonly string[]
  readonly uniform: readonly string[]
}) {
  const { kind, state, shown, total, columns, uniform } = props
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
          placeholder={
            shown?.hasNames === false
              ? list.filterPlain
              : list.filterPlaceholder('roleAttributes' in kind.fields)
          }
          value={typed.value}
          spellcheck={false}
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value
            if (timer.current !== null) clearTimeout(timer.current)
            timer.current = setTimeout(() => {
              const next = { ...state, typed: typed.value, offset: 0 }
              navigateTo(consolePath(kind.path) + formatListState(next), { replaces: true })
            }, TYPING_MS)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
          }}
        />
      </div>
      <Facets kind={kind} state={state} />
      <span class="faint small" role="status">
        {total === null ? '' : list.total(total, isNarrowed(kind, state))}
        {uniform.includes('semantic') && !isNarrowWindow.value ? (
          <>
            {` · ${columnLabel(kind, 'semantic')}: `}
            <FieldCell row={shown?.page.rows[0] ?? {}} name="semantic" />
          </>
        ) : null}
      </span>
      {isFiltered(state) && total !== null && total > 0 ? (
        <Button
          kind="quiet"
          onClick={() => {
            typed.value = ''
            navigateTo(consolePath(kind.path), { replaces: true })
          }}
        >
          {list.reset}
        </Button>
      ) : null}
      {shown === null || shown.page.totalCount === 0 ? null : (
        <ListExportButtons kind={kind} state={state} fields={shown.fields} columns={columns}>
          <ColumnChoice kind={kind} available={shown.available} />
        </ListExportButtons>
      )}
    </div>
  )
}

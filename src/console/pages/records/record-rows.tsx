import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { navigateTo, consolePath } from '../../app/navigation.ts'
import { registerKey } from '../../app/shortcuts.ts'
import { Button, LinkButton } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Badge, EmptyState, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { DEFAULT_AUTH_POLICY } from './list-relations.ts'
import { configTypeUse, FieldCell } from './record-cell.tsx'
import {
  chosenOption,
  EVERY,
  type ListState,
  formatListState,
  isFiltered,
  listSortField,
} from './filters.ts'
import { listFacets } from './list-facets.ts'
import { rowSummary, shortSummaries } from './row-summary.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { columnLabel } from './form-model.ts'
import type { ConsoleKind } from './kinds.ts'
import { BULK_RECORDS_MAX, type Selection } from './list-tools.tsx'
import type { RecordRow, RowPage } from './record-data.ts'
import { rowTitle } from './row-title.ts'
import { LISTED_ROWS_MAX, useRowWindow } from './row-window.ts'

/** A loaded part of a list, without the columns that the user has chosen. */
export interface LoadedList {
  readonly page: RowPage
  /** Number of the first loaded row, counted among all rows. */
  readonly firstRow: number
  /** Columns that the user can choose. */
  readonly available: readonly string[]
  readonly hasNames: boolean
  readonly mayCreate: boolean
  readonly canCreate: boolean
  /** Fields of a row in which typed text is searched. */
  readonly fields: readonly string[]
  readonly hasAttributes: boolean
  readonly canDelete: boolean
}

export interface ListPageData extends LoadedList {
  readonly columns: readonly string[]
}

/** How the user creates a record of the list. */
interface Creation {
  /** Why the user cannot create a record now. */
  readonly refused: string | null
  readonly onCreate: () => void
}

/** The table of a list; it scrolls over the rows, loaded or not, up to {@link LISTED_ROWS_MAX}. */
export function RecordTable(props: {
  readonly kind: ConsoleKind
  readonly state: ListState
  readonly shown: ListPageData | null
  readonly selection: Selection
  readonly creation: Creation
}) {
  const { kind, state, shown, selection, creation } = props
  const at = useSignal(-1)
  const rows = shown?.page.rows ?? []
  const firstRow = shown?.firstRow ?? 0
  const totalRows = Math.min(shown?.page.totalCount ?? 0, LISTED_ROWS_MAX)
  const part = useRowWindow({
    offset: state.offset,
    firstRow,
    rows: rows.length,
    totalRows,
    onPage: (offset) =>
      navigateTo(consolePath(kind.path) + formatListState({ ...state, offset }), {
        replaces: true,
      }),
  })
  const order = `${state.typed} ${state.sort} ${state.isDescending} ${JSON.stringify(state.facets)}`
  const isSelectable = shown !== null && (shown.hasAttributes || shown.canDelete)
  const orderBefore = useRef(order)
  useEffect(() => {
    if (orderBefore.current !== order) scrollTo(0, 0)
    orderBefore.current = order
    at.value = -1
  }, [order])
  const select = useSelect(selection, rows)
  const wrap = useMarkWhileFitting(totalRows > 0)
  useRowKeys({ kind, rows, firstRow, totalRows, at, onShow: part.show })
  if (shown !== null && totalRows === 0) {
    return <NoRows kind={kind} shown={shown} state={state} creation={creation} />
  }
  const cells = (isSelectable ? 2 : 1) + columnsOf(shown).length
  const first = rows.slice(0, BULK_RECORDS_MAX)
  return (
    <section class="panel" aria-label={kind.many} aria-busy={shown === null}>
      <div ref={wrap} class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table even" aria-rowcount={shown === null ? undefined : totalRows + 1}>
          <Head
            kind={kind}
            state={state}
            shown={shown}
            selecting={
              isSelectable
                ? {
                    isOn: rows.length > 0 && first.every(({ id }) => selection.value.has(id)),
                    isPartial: selection.value.size > 0 && selection.value.size < totalRows,
                    onChange: (isOn) => select(isOn ? first : rows, isOn),
                  }
                : null
            }
          />
          <tbody ref={part.body}>
            <Space heightPx={part.beforePx} cells={cells} />
            {shown === null
              ? [0, 1, 2, 3, 4].map((key) => (
                  <tr key={key}>
                    <td colSpan={cells}>
                      <Skeleton width="60%" />
                    </td>
                  </tr>
                ))
              : rows.map((row, index) => (
                  <Row
                    key={row.id}
                    kind={kind}
                    row={row}
                    shown={shown}
                    place={firstRow + index}
                    isAt={firstRow + index === at.value}
                    onAttribute={(attribute) =>
                      navigateTo(
                        consolePath(kind.path) +
                          formatListState({ ...state, typed: `#${attribute}`, offset: 0 }),
                      )
                    }
                    selecting={
                      isSelectable
                        ? {
                            isOn: selection.value.has(row.id),
                            onChange: (isOn) => select([row], isOn),
                          }
                        : null
                    }
                  />
                ))}
            <Space heightPx={part.afterPx} cells={cells} />
          </tbody>
        </table>
      </div>
      {(shown?.page.totalCount ?? 0) > LISTED_ROWS_MAX ? (
        <p class="panel-body soft small">{texts.list.notAll(LISTED_ROWS_MAX)}</p>
      ) : null}
    </section>
  )
}

/** Marks the element around a table while it need not scroll sideways. */
function useMarkWhileFitting(isShown: boolean): RefObject<HTMLDivElement | null> {
  const wrap = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = wrap
    const table = current?.firstElementChild ?? null
    if (current === null || table === null) return undefined
    const observer = new ResizeObserver(() =>
      current.classList.toggle('fits', current.scrollWidth <= current.clientWidth),
    )
    observer.observe(current)
    observer.observe(table)
    return () => observer.disconnect()
  }, [isShown])
  return wrap
}

/**
 * Columns in addition to the name; a table with few of them also shows when a record was created.
 */
function columnsOf(shown: ListPageData | null): readonly string[] {
  if (shown === null) return []
  const { columns } = shown
  return columns.length < COLUMNS_WITH_CREATION ? [...columns, 'createdAt'] : columns
}

const COLUMNS_WITH_CREATION = 3

/** The summary below the name of a row; null in a wide window, and for kinds without one. */
function narrowSummary({ path }: ConsoleKind, row: RecordRow | undefined): string | null {
  return isNarrowWindow.value && row !== undefined ? rowSummary(path, row) : null
}

/** The columns that remain beside a summary: those that the kind names for a narrow window. */
function columnsBeside(
  { narrow }: ConsoleKind,
  shown: ListPageData | null,
  summary: string | null,
): readonly string[] {
  return columnsOf(shown).filter((name) => summary === null || narrow.includes(name))
}

/** Whether a narrow window leaves out a column. */
function isMinor({ narrow }: ConsoleKind, name: string, at: number): boolean {
  return narrow.length === 0 ? at > 0 : !narrow.includes(name)
}

/** Kinds whose records nearly always come from the controllers, or are not needed. */
const rarelyMade: ReadonlySet<string> = new Set(['revocations', 'controller-settings'])

/**
 * Shown when there are no rows: offers to clear the filter if there is one, and otherwise describes
 * the consequence of an empty list, and offers the tasks and the form that create records.
 */
function NoRows(props: {
  readonly kind: ConsoleKind
  readonly shown: ListPageData
  readonly state: ListState
  readonly creation: Creation
}) {
  const { kind, shown, state } = props
  const { refused, onCreate } = props.creation
  const narrowing = listFacets(kind).find((one) => one.usual?.value === chosenOption(state, one))
  const { list } = texts
  if (isFiltered(state)) {
    return (
      <div class="panel">
        <EmptyState icon="search" title={list.noMatch}>
          <p>{list.noMatchWhat}</p>
          <Button onClick={() => navigateTo(consolePath(kind.path))}>{list.clear}</Button>
        </EmptyState>
      </div>
    )
  }
  const tasks = refused === null && shown.mayCreate ? kind.tasks : []
  // The button for a new record of some kinds opens the first task.
  const hasForm = shown.canCreate && (kind.wizard === null || tasks.length === 0)
  return (
    <div class="panel">
      <EmptyState icon={kind.icon} title={list.none(kind.many)}>
        <p>{kind.empty}</p>
        {tasks.length > 0 || hasForm || narrowing !== undefined ? (
          <div class="row">
            {narrowing?.usual === undefined ? null : (
              <LinkButton href={`${consolePath(kind.path)}?is-${narrowing.name}=${EVERY}`}>
                {narrowing.usual.showAll}
              </LinkButton>
            )}
            {tasks.map((task, at) => (
              <LinkButton
                key={task}
                kind={at === 0 ? 'primary' : 'plain'}
                href={consolePath('wizards', task)}
              >
                {texts.wizards.titles[task]}
              </LinkButton>
            ))}
            {hasForm ? (
              <Button
                icon="plus"
                kind={tasks.length === 0 && !rarelyMade.has(kind.path) ? 'primary' : 'plain'}
                refused={refused}
                onClick={onCreate}
              >
                {list.create(kind.one)}
              </Button>
            ) : null}
          </div>
        ) : null}
      </EmptyState>
    </div>
  )
}

/** Lets `j`, `k`, Enter and `e` move through the list and open a record. */
function useRowKeys(props: {
  readonly kind: ConsoleKind
  readonly rows: readonly RecordRow[]
  readonly firstRow: number
  readonly totalRows: number
  /** Number of the row to which the keys have moved. */
  readonly at: Signal<number>
  readonly onShow: (row: number) => void
}): void {
  const { kind, rows, firstRow, totalRows, at, onShow } = props
  useEffect(() => {
    const step = (by: number) => (): void => {
      at.value = Math.min(totalRows - 1, Math.max(0, at.value + by))
      onShow(at.value)
    }
    const open = (query = ''): void => {
      const row = rows[at.value - firstRow]
      if (row !== undefined) navigateTo(recordHref(kind, row) + query)
    }
    const undo = [
      registerKey('j', step(1)),
      registerKey('k', step(-1)),
      registerKey('Enter', () => open()),
      registerKey('e', () => open('?tab=edit')),
    ]
    return () => undo.forEach((one) => one())
  }, [rows, firstRow, totalRows, kind])
}

/** Selects rows, and updates a selected row when it is loaded again. */
function useSelect(
  selection: Selection,
  rows: readonly RecordRow[],
): (changed: readonly RecordRow[], isOn: boolean) => void {
  // When a selected row is loaded again, the next change uses the newly loaded record.
  useEffect(() => {
    const again = rows.filter(({ id }) => selection.peek().has(id))
    if (again.length === 0) return
    selection.value = new Map([...selection.peek(), ...again.map((row) => [row.id, row] as const)])
  }, [rows])
  return (changed, isOn) => {
    const next = new Map(selection.value)
    for (const row of changed) {
      if (isOn) next.set(row.id, row)
      else next.delete(row.id)
    }
    selection.value = next
  }
}

/** Empty space for rows that are not loaded. */
function Space({ heightPx, cells }: { readonly heightPx: number; readonly cells: number }) {
  if (heightPx === 0) return null
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={cells} style={{ height: `${heightPx}px` }} />
    </tr>
  )
}

interface Selecting {
  readonly isOn: boolean
  /** Whether some records of the list are selected, but not all. */
  readonly isPartial?: boolean
  readonly onChange: (isOn: boolean) => void
}

function Check({ label, isOn, isPartial, onChange }: Selecting & { readonly label: string }) {
  return (
    <input
      type="checkbox"
      aria-label={label}
      checked={isOn}
      indeterminate={isPartial}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  )
}

function Head(props: {
  readonly kind: ConsoleKind
  readonly state: ListState
  readonly shown: ListPageData | null
  readonly selecting: Selecting | null
}) {
  const { kind, state, shown, selecting } = props
  const sortable = new Set(shown?.page.filterableFields ?? [])
  const first = shown?.hasNames === false ? 'id' : 'name'
  const [row] = shown?.page.rows ?? []
  return (
    <thead>
      <tr>
        {selecting === null ? null : (
          <td class="select">
            <Check label={texts.list.selectAll} {...selecting} />
          </td>
        )}
        {[first, ...columnsBeside(kind, shown, narrowSummary(kind, row))].map((name, at) => (
          <Header
            key={name}
            name={name}
            isMinor={at > 0 && isMinor(kind, name, at - 1)}
            kind={kind}
            state={state}
            hasNames={shown?.hasNames === true}
            isSortable={sortable.has(name) && !name.endsWith('Roles')}
          />
        ))}
      </tr>
    </thead>
  )
}

function Header(props: {
  readonly name: string
  readonly kind: ConsoleKind
  readonly state: ListState
  readonly hasNames: boolean
  readonly isSortable: boolean
  /** True: the column is left out in a narrow window. */
  readonly isMinor: boolean
}) {
  const { name, kind, state, hasNames, isSortable, isMinor } = props
  const isSorted = listSortField(state, hasNames) === name
  const label = columnLabel(kind, name)
  const shownIn = isMinor ? 'minor' : ''
  // Without names, the list shows titles that are not IDs, so rows sorted by ID would seem
  // unsorted.
  if (!isSortable || name === 'id') {
    return (
      <th scope="col" class={shownIn}>
        {label}
      </th>
    )
  }
  const next = { ...state, sort: name, isDescending: isSorted && !state.isDescending, offset: 0 }
  const sorted = state.isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" class={shownIn} aria-sort={isSorted ? sorted : 'none'}>
      <button
        type="button"
        class="sort"
        onClick={() =>
          navigateTo(consolePath(kind.path) + formatListState(next), { replaces: true })
        }
      >
        {label}
        {isSorted ? <Icon name={state.isDescending ? 'sortDown' : 'sortUp'} size={12} /> : null}
      </button>
    </th>
  )
}

/** The page of a record; an edge router has a better one than the list of transit routers knows. */
function recordHref({ path }: ConsoleKind, row: RecordRow): string {
  return consolePath(row['isEdgeRouter'] === true ? 'edge-routers' : path, row.id)
}

/** Whether a record is a config type of OpenZiti, which programs rely on. */
export function isBuiltIn({ path }: ConsoleKind, row: RecordRow): boolean {
  return path === 'config-types' && configTypeUse(row['name']) !== ''
}

/** Marks a record that the network itself has made. */
export function Origin({ kind, row }: { readonly kind: ConsoleKind; readonly row: RecordRow }) {
  const { cell } = texts
  const text =
    row['isSystem'] === true
      ? cell.system
      : kind.path === 'auth-policies' && row.id === DEFAULT_AUTH_POLICY
        ? cell.standard
        : isBuiltIn(kind, row)
          ? cell.builtIn
          : ''
  return text === '' || text === row['name'] ? null : (
    <>
      {' '}
      <Badge>{text}</Badge>
    </>
  )
}

function Row(props: {
  readonly kind: ConsoleKind
  readonly row: RecordRow
  readonly shown: ListPageData
  readonly place: number
  readonly isAt: boolean
  readonly onAttribute: (attribute: string) => void
  readonly selecting: Selecting | null
}) {
  const { kind, row, shown, place, isAt, onAttribute, selecting } = props
  const title = rowTitle(row, !shown.columns.includes('method'))
  const summary = narrowSummary(kind, row)
  return (
    <tr class={isAt || selecting?.isOn === true ? 'at' : ''} aria-rowindex={place + 2}>
      {selecting === null ? null : (
        <td class="select">
          <Check label={texts.list.select(title)} {...selecting} />
        </td>
      )}
      <th scope="row">
        <a class="clip" href={recordHref(kind, row)}>
          {title}
        </a>
        <Origin kind={kind} row={row} />
        {summary === null ? null : (
          <p class={`row-summary soft ${shortSummaries.has(kind.path) ? 'short' : ''}`}>
            {summary}
          </p>
        )}
      </th>
      {columnsBeside(kind, shown, summary).map((column, at) => (
        <td key={column} class={isMinor(kind, column, at) ? 'minor' : ''}>
          <FieldCell row={row} name={column} onAttribute={onAttribute} />
        </td>
      ))}
    </tr>
  )
}

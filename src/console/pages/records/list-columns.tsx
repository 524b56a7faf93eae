import { signal, useSignal } from '@preact/signals'

import type { ServedSchema } from '../../client/api-document.ts'
import { Button } from '../../controls/button.tsx'
import { texts } from '../../texts.ts'
import { columnLabel } from './form-model.ts'
import { isObject } from './json-values.ts'
import { computedColumns } from './computed-columns.ts'
import type { ConsoleKind } from './kinds.ts'
import { isEmptyCell } from './record-cell.tsx'
import type { RowPage } from './record-data.ts'
import { secretMemberNames } from './list-export.ts'

const STORED = 'flotilla.columns'

/** Columns that the user chose, by the path of the kind. */
const chosen = signal<Readonly<Record<string, readonly string[]>>>(read())

function read(): Readonly<Record<string, readonly string[]>> {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? '{}') as unknown
    if (!isObject(stored)) return {}
    const lists = Object.entries(stored).filter(([, names]) => Array.isArray(names))
    return Object.fromEntries(
      lists.map(([path, names]) => [path, (names as unknown[]).map(String)]),
    )
  } catch {
    // Another release may have stored the columns in a format that this release cannot read.
    return {}
  }
}

const cellTypes: ReadonlySet<unknown> = new Set(['string', 'boolean', 'integer', 'number'])

/** Whether a cell can show the values of a field. */
function fitsCell({ type, items }: ServedSchema): boolean {
  const types = [type].flat().filter((one) => one !== 'null')
  if (types.length === 1 && types[0] === 'array') return items === undefined || fitsCell(items)
  return types.length > 0 && types.every((one) => cellTypes.has(one))
}

/** Fields of a kind that its list can show: the usual columns, then the others by name. */
export function availableColumns(
  kind: ConsoleKind,
  fields: Readonly<Record<string, ServedSchema>>,
): readonly string[] {
  const usual = kind.columns.filter((name) => computedColumns.has(name) || name in fields)
  const fixed = new Set([...usual, 'name', 'createdAt'])
  const others = Object.keys(fields).filter(
    (name) =>
      !fixed.has(name) &&
      !secretMemberNames.has(name) &&
      !/(Display|Pem)$/.test(name) &&
      fitsCell(fields[name] ?? {}),
  )
  return [...usual, ...others.sort()]
}

/** The columns of a list, in the order in which they are available. */
export function chosenColumns(kind: ConsoleKind, available: readonly string[]): readonly string[] {
  const names = new Set(chosen.value[kind.path] ?? kind.columns)
  return available.filter((name) => names.has(name))
}

/**
 * Columns that say nothing about a row while no row has a value, although their cells are not
 * empty; `semantic` also while all rows have the same value.
 */
const quietColumns: ReadonlySet<string> = new Set(['semantic', 'postureCheckRoles', 'expiresAt'])

function hasNoValue(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0)
}

/**
 * The columns that a completely loaded list of several rows leaves out, because they say nothing
 * about a row; none if the user has chosen the columns.
 */
export function uniformColumns(
  kind: Pick<ConsoleKind, 'path'>,
  { rows, totalCount }: RowPage,
  columns: readonly string[],
): readonly string[] {
  if (kind.path in chosen.value || rows.length < 2 || rows.length < totalCount) return []
  return columns.filter((name) => {
    if (rows.every((row) => isEmptyCell(row, name))) return true
    if (!quietColumns.has(name)) return false
    const [first, ...others] = rows.map((row) => row[name])
    if (hasNoValue(first)) return others.every(hasNoValue)
    return name === 'semantic' && others.every((value) => value === first)
  })
}

function choose(kind: ConsoleKind, names: readonly string[] | null): void {
  const { [kind.path]: _, ...others } = chosen.value
  chosen.value = names === null ? others : { ...others, [kind.path]: names }
  localStorage.setItem(STORED, JSON.stringify(chosen.value))
}

/** Lets the user choose the columns of a list. The browser keeps the choice. */
export function ColumnChoice({
  kind,
  available,
}: {
  readonly kind: ConsoleKind
  readonly available: readonly string[]
}) {
  const { list } = texts
  const isOpen = useSignal(false)
  const names = chosenColumns(kind, available)
  return (
    <details
      class="column-choice"
      onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.currentTarget.open = false
        event.currentTarget.querySelector('summary')?.focus()
      }}
    >
      <summary class="button">{list.chooseColumns}</summary>
      {isOpen.value ? (
        <fieldset class="picker-list">
          <legend class="visually-hidden">{list.chooseColumns}</legend>
          {available.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={names.includes(name)}
                onChange={({ currentTarget: { checked } }) => {
                  const next = available.filter((one) =>
                    one === name ? checked : names.includes(one),
                  )
                  choose(kind, next)
                }}
              />
              {columnLabel(kind, name)}
            </label>
          ))}
          <Button kind="quiet" onClick={() => choose(kind, null)}>
            {list.usualColumns}
          </Button>
        </fieldset>
      ) : null}
    </details>
  )
}

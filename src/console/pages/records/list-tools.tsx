import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { sortByName } from '../../app/name-order.ts'
import { downloadText } from '../../app/download.ts'
import { useListFile } from '../../app/list-file.tsx'
import { navigateTo, consolePath } from '../../app/navigation.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { Button } from '../../controls/button.tsx'
import { Field } from '../../controls/field.tsx'
import { Menu } from '../../controls/menu.tsx'
import { Chips } from '../../controls/picker.tsx'
import { texts } from '../../texts.ts'
import { ChangeDialog, type RecordChange } from './change-dialog.tsx'
import { chosenOption, EVERY, formatListState, type ListState } from './filters.ts'
import type { ConsoleKind } from './kinds.ts'
import { listFacets, type ListFacet } from './list-facets.ts'
import { EXPORTED_ROWS_MAX, readExportedPage, rowsAsCsv, rowsAsJson } from './list-export.ts'
import { recordApiPath, type RecordRow, type RowPage, writeRecord } from './record-data.ts'
import { RolesInput } from './reference-inputs.tsx'
import { rowTitle } from './row-title.ts'

/** Maximum records in one preview, the same limit as in controllers. */
export const BULK_RECORDS_MAX = 64

interface FilterProps {
  readonly kind: ConsoleKind
  readonly state: ListState
}

function choose({ kind, state }: FilterProps, chosen: ListState['facets']): void {
  const facets = { ...state.facets, ...chosen }
  navigateTo(consolePath(kind.path) + formatListState({ ...state, facets, offset: 0 }), {
    replaces: true,
  })
}

/**
 * Number of filter choices (facets) next to the search field of a wide window; a menu contains the
 * others.
 */
const INLINE_FACETS = 3

/** The filter choices next to the search field, and those in a menu. */
function placedFacets(kind: Pick<ConsoleKind, 'path'>) {
  const facets = listFacets(kind)
  const amount = isNarrowWindow.value ? 0 : INLINE_FACETS
  return { inline: facets.slice(0, amount), others: facets.slice(amount) }
}

/** Shows the filter choices of a list. */
export function Facets(props: FilterProps) {
  const { kind, state } = props
  const { inline, others } = placedFacets(kind)
  const chosen = others.filter((facet) => chosenOption(state, facet) !== '').length
  return (
    <>
      {inline.map((facet) => (
        <FacetSelect key={facet.name} {...props} facet={facet} />
      ))}
      {others.length === 0 ? null : (
        <Menu label={texts.list.filters} icon="filter" note={chosen === 0 ? '' : String(chosen)}>
          {others.map((facet) => (
            <Field key={facet.name} label={facet.label}>
              {(ids) => <FacetSelect {...props} facet={facet} ids={ids} />}
            </Field>
          ))}
          {chosen === 0 ? null : (
            <Button
              kind="quiet"
              onClick={() =>
                choose(props, Object.fromEntries(others.map(({ name }) => [name, ''])))
              }
            >
              {texts.list.reset}
            </Button>
          )}
        </Menu>
      )}
    </>
  )
}

/** The value for no filter: it is in the address if the list is narrower without it. */
function everyOption(usual: ListFacet['usual']): string {
  return usual === undefined ? '' : EVERY
}

function FacetSelect(
  props: FilterProps & {
    readonly facet: ListFacet
    /**
     * Attributes that link the choice with its visible label; absent: the label is only for screen
     * readers.
     */
    readonly ids?: { readonly id: string }
  },
) {
  const { name, label, options, usual } = props.facet
  const value = chosenOption(props.state, props.facet)
  return (
    <select
      class={`input facet ${value === '' ? '' : 'chosen-facet'}`}
      {...(props.ids ?? { 'aria-label': label })}
      value={value}
      onChange={({ currentTarget }) =>
        choose(props, { [name]: currentTarget.value || everyOption(usual) })
      }
    >
      <option value="">
        {props.ids === undefined ? texts.list.every(label) : texts.access.shows.all}
      </option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  )
}

/** The choices in the menu that narrow the list now, each with a button that removes it. */
export function ActiveFilters(props: FilterProps) {
  const { kind, state } = props
  const { others } = placedFacets(kind)
  const active = others.flatMap((facet) => {
    const { name, label, options } = facet
    const option = options.find(({ value }) => value === chosenOption(state, facet))
    return option === undefined ? [] : [{ value: name, text: `${label}: ${option.text}` }]
  })
  if (active.length === 0) return null
  return (
    <div class="active-filters row" role="group" aria-label={texts.list.active}>
      <Chips
        values={active}
        onRemove={(name) =>
          choose(props, { [name]: everyOption(others.find((one) => one.name === name)?.usual) })
        }
      />
    </div>
  )
}

/** Saves the rows of the list as a file; `children` are beside the menu of formats. */
export function ListExportButtons(props: {
  readonly kind: ConsoleKind
  readonly state: ListState
  readonly fields: readonly string[]
  readonly columns: readonly string[]
  readonly children: ComponentChildren
}) {
  const { kind, state, fields, columns, children } = props
  const { list } = texts
  const { save, progress, outcome } = useListFile()
  const run = (format: 'csv' | 'json') => (): void =>
    save({
      rowsMax: EXPORTED_ROWS_MAX,
      read: (offset) => readExportedPage(kind, state, fields, offset),
      save: (rows) => {
        const text = format === 'csv' ? rowsAsCsv(rows, columns) : rowsAsJson(rows)
        downloadText(
          `${kind.path}.${format}`,
          text,
          format === 'csv' ? 'text/csv' : 'application/json',
        )
      },
      count: (amount) => texts.count(amount, kind.one, kind.many),
    })
  const buttons = (['csv', 'json'] as const).map((format) => (
    <Button key={format} kind="quiet" isBusy={progress !== ''} onClick={run(format)}>
      {list.exportAs[format]}
    </Button>
  ))
  return (
    <>
      <span class="exports">
        {children}
        <Menu label={list.exports} icon="backup" closesOnChoice>
          {buttons}
        </Menu>
        <span class="faint small" role="status">
          {progress}
        </span>
      </span>
      {outcome}
    </>
  )
}

export type Selection = Signal<ReadonlyMap<string, RecordRow>>

type BulkVerb = 'add' | 'remove' | 'delete'

/** Why this many records cannot be changed at once; null if they can. */
function bulkRefusal(amount: number): string | null {
  if (isReadOnly.value) return texts.banner.refused
  return amount > BULK_RECORDS_MAX ? texts.list.tooMany(BULK_RECORDS_MAX) : null
}

/**
 * Actions on the selected records. Each one first shows its effect on access; disabling shows the
 * names of the identities.
 */
export function BulkActionBar(props: {
  readonly kind: ConsoleKind
  readonly selection: Selection
  /** The loaded rows. */
  readonly page: RowPage
  readonly hasAttributes: boolean
  readonly canDelete: boolean
  readonly onDone: () => void
}) {
  const { kind, selection, page, hasAttributes, canDelete, onDone } = props
  const { list } = texts
  const attributes = useSignal<readonly string[]>([])
  const verb = useSignal<BulkVerb | null>(null)
  const isDone = useSignal(false)
  const rows = [...selection.value.values()]
  if (rows.length === 0) return null
  const refused = bulkRefusal(rows.length)
  const ofAttributes = refused ?? (attributes.value.length === 0 ? list.chooseAttribute : null)
  const amount = texts.count(rows.length, kind.one, kind.many)
  const named = attributes.value.map((one) => `#${one}`).join(', ')
  return (
    <section class="panel panel-body bulk" aria-label={list.selected(rows.length)}>
      <strong role="status">{list.selected(rows.length)}</strong>
      <SelectAll selection={selection} page={page} />
      {hasAttributes ? (
        <div class="bulk-attributes">
          <Field label={texts.wizards.attributes}>
            {(ids) => (
              <RolesInput
                ids={ids}
                kind={kind.path}
                isOwn
                semantic="AnyOf"
                placeholder={texts.roles.one}
                chosen={attributes.value}
                onChange={(chosen) => (attributes.value = chosen)}
              />
            )}
          </Field>
          <Button refused={ofAttributes} onClick={() => (verb.value = 'add')}>
            {list.addAttributes}
          </Button>
          <Button refused={ofAttributes} onClick={() => (verb.value = 'remove')}>
            {list.removeAttributes}
          </Button>
        </div>
      ) : null}
      {kind.path === 'identities' && hasAttributes ? (
        <DisableButton rows={rows} amount={amount} refused={refused} onDone={onDone} />
      ) : null}
      {canDelete ? (
        <Button
          icon="trash"
          kind="danger"
          refused={refused}
          onClick={() => (verb.value = 'delete')}
        >
          {texts.record.delete}
        </Button>
      ) : null}
      <Button kind="quiet" onClick={() => (selection.value = new Map())}>
        {list.unselect}
      </Button>
      {verb.value === null ? null : (
        <ChangeDialog
          title={
            verb.value === 'delete'
              ? list.bulkTitles.delete(amount)
              : list.bulkTitles[verb.value](named, amount)
          }
          verb={
            { add: list.addAttributes, remove: list.removeAttributes, delete: texts.record.delete }[
              verb.value
            ]
          }
          isDangerous={verb.value === 'delete'}
          changes={changesForSelection(kind, rows, verb.value, attributes.value)}
          onClose={() => {
            // The selection is cleared only when the dialog closes: without a selection, the dialog
            // and the refusals in it would disappear.
            if (isDone.value && verb.value === 'delete') selection.value = new Map()
            isDone.value = false
            verb.value = null
          }}
          onDone={() => {
            isDone.value = true
            onDone()
          }}
        />
      )}
    </section>
  )
}

/** Selects all rows, or shows how many rows can be selected in a longer list. */
function SelectAll(props: { readonly selection: Selection; readonly page: RowPage }) {
  const { selection, page } = props
  const { list } = texts
  const { size } = selection.value
  const { rows, totalCount } = page
  if (Math.max(size, totalCount) > BULK_RECORDS_MAX) {
    return <span class="hint">{list.ofMany(totalCount, BULK_RECORDS_MAX)}</span>
  }
  if (size >= totalCount || rows.length < totalCount) return null
  return (
    <Button
      kind="quiet"
      onClick={() => (selection.value = new Map(rows.map((row) => [row.id, row])))}
    >
      {list.selectEvery(totalCount)}
    </Button>
  )
}

/** Disables the selected identities, after their names were shown. */
function DisableButton(props: {
  readonly rows: readonly RecordRow[]
  /** The number of identities in words. */
  readonly amount: string
  readonly refused: string | null
  readonly onDone: () => void
}) {
  const { rows, amount, refused, onDone } = props
  const { list, acts } = texts
  const isAsking = useSignal(false)
  const names = sortByName(
    rows.map((row) => rowTitle(row)),
    (name) => name,
  )
  return (
    <>
      <Button refused={refused} onClick={() => (isAsking.value = true)}>
        {acts.disable}
      </Button>
      {isAsking.value ? (
        <ConfirmDialog
          title={list.bulkTitles.disable(amount)}
          verb={acts.disable}
          isDangerous
          run={() => disableIdentities(rows)}
          done={list.bulkDisabled(amount)}
          onClose={() => (isAsking.value = false)}
          onDone={onDone}
        >
          <p class="soft">{list.bulkDisableWhat}</p>
          <p>{names.join(', ')}</p>
        </ConfirmDialog>
      ) : null}
    </>
  )
}

/** Disables identities one after the other; a refusal leaves the later ones as they are. */
async function disableIdentities(rows: readonly RecordRow[]): Promise<void> {
  for (const { id, disabled } of rows) {
    if (disabled === true) continue
    const path = `${recordApiPath('identities', id)}/disable`
    await writeRecord({ method: 'POST', path, body: { durationMinutes: 0 } })
  }
}

/** The change for each record that is not yet in the desired state. */
export function changesForSelection(
  kind: Pick<ConsoleKind, 'path'>,
  rows: readonly RecordRow[],
  verb: BulkVerb,
  attributes: readonly string[],
): readonly RecordChange[] {
  return rows.flatMap((row): RecordChange[] => {
    const common = { collection: kind.path, id: row.id, name: rowTitle(row) }
    if (verb === 'delete') return [{ ...common, data: null }]
    const own = Array.isArray(row['roleAttributes']) ? (row['roleAttributes'] as string[]) : []
    const roleAttributes =
      verb === 'add'
        ? [...new Set([...own, ...attributes])]
        : own.filter((one) => !attributes.includes(one))
    if (roleAttributes.length === own.length) return []
    return [{ ...common, before: { roleAttributes: own }, data: { roleAttributes } }]
  })
}

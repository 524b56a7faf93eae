import { useSignal } from '@preact/signals'

import { ApiRefusalError } from '../../../client/client-errors.ts'
import { failureText } from '../../app/failure.tsx'
import { refusedChange } from '../../app/fault-text.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { TextField } from '../../controls/field.tsx'
import { Notice } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { sortByName } from '../../app/name-order.ts'
import { texts } from '../../texts.ts'
import { AccessEffectResult, loadAccessEffect } from '../access/preview.tsx'
import { ChangedFields } from './changed-fields.tsx'
import type { Draft } from './json-values.ts'
import { fieldLabel } from './form-model.ts'
import { findKindAtPath } from './kinds.ts'
import { recordApiPath, writeRecord } from './record-data.ts'

/** A change of one record: a patch of fields, or its deletion. */
export interface RecordChange {
  readonly collection: string
  readonly id: string
  readonly name: string
  /** Null: the record is deleted. */
  readonly data: Draft | null
  /** Values of the changed fields before the change. */
  readonly before?: Draft
  /** ETag that the record had when it was shown; null: the change is made without a check. */
  readonly ifMatch?: string | null
}

interface Refused {
  readonly name: string
  readonly reason: string
}

/** Changes one or several records, after showing how this affects access. */
export function ChangeDialog(props: {
  readonly title: string
  readonly verb: string
  readonly isDangerous?: boolean
  readonly changes: readonly RecordChange[]
  readonly onClose: () => void
  /** Called after at least one record was changed. */
  readonly onDone: () => void
}) {
  const { title, verb, changes, onClose, onDone, isDangerous = false } = props
  const made = useSignal<ReadonlySet<string>>(new Set())
  const refused = useSignal<readonly Refused[]>([])
  const isBusy = useSignal(false)
  const typed = useSignal('')
  const { bulk } = pageTexts
  const previewed = changes.map(({ collection, id, data }) => ({
    action: data === null ? ('delete' as const) : ('patch' as const),
    collection,
    id,
    data,
  }))
  const effect = useLoadedData(JSON.stringify(previewed), (signal) =>
    loadAccessEffect(previewed, signal),
  )
  const impossible = impossibleChange(changes, effect.error.value)
  const [first] = changes
  // The deletion of several records needs more than a click, like that of a single one.
  const phrase =
    isDangerous && changes.length > 1
      ? bulk.phrase(texts.count(changes.length, ...kindWords(first?.collection)))
      : null
  const run = async (): Promise<void> => {
    isBusy.value = true
    refused.value = []
    for (const change of changes) {
      if (made.value.has(change.id)) continue
      try {
        await writeRecord(writeOf(change))
        made.value = new Set([...made.value, change.id])
      } catch (error) {
        refused.value = [...refused.value, { name: change.name, reason: failureText(error) }]
      }
    }
    isBusy.value = false
    if (made.value.size > 0) onDone()
    if (refused.value.length > 0) return
    showToast(bulk.done(changes.length))
    onClose()
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      foot={
        <>
          <span class="faint small" role="status">
            {isBusy.value ? bulk.progress(made.value.size, changes.length) : ''}
          </span>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button
            kind={isDangerous ? 'destroy' : 'primary'}
            isBusy={isBusy.value}
            refused={
              impossible ??
              (phrase === null || typed.value === phrase ? null : texts.manage.typeFirst)
            }
            onClick={() => void run()}
          >
            {verb}
          </Button>
        </>
      }
    >
      <RefusedChanges refused={refused.value} total={changes.length} />
      <ChangedValues changes={changes} />
      {phrase === null ? null : (
        <>
          <p class="soft">{bulk.deleteWhat}</p>
          <TextField
            label={texts.manage.typeThis(phrase)}
            value={typed.value}
            onInput={(value) => (typed.value = value)}
          />
        </>
      )}
      {impossible === null ? (
        <AccessEffectResult effect={effect} />
      ) : (
        <Notice tone="bad">{impossible}</Notice>
      )}
    </Dialog>
  )
}

/** The records that were not changed, each with the reason. */
function RefusedChanges(props: { readonly refused: readonly Refused[]; readonly total: number }) {
  const { refused, total } = props
  if (refused.length === 0) return null
  return (
    <Notice tone="bad">
      {pageTexts.bulk.refused(refused.length, total)}
      <ul>
        {refused.map(({ name, reason }) => (
          <li key={name}>
            <strong>{visibleText(name)}</strong> {reason}
          </li>
        ))}
      </ul>
    </Notice>
  )
}

function writeOf({ collection, id, data, ifMatch = null }: RecordChange) {
  const path = recordApiPath(collection, id)
  if (data === null) return { method: 'DELETE', path, ifMatch } as const
  return { method: 'PATCH', path, body: data, ifMatch } as const
}

function kindWords(collection = ''): readonly [one: string, many: string] {
  const kind = findKindAtPath(collection)
  return [kind?.one ?? collection, kind?.many ?? collection]
}

/** Why the controller would refuse one of the changes, with the name of its record. */
function impossibleChange(changes: readonly RecordChange[], error: unknown): string | null {
  if (!(error instanceof ApiRefusalError)) return null
  const change = changes[refusedChange(error.fault?.field ?? error.detail) ?? changes.length]
  if (change === undefined) return null
  const name = visibleText(change.name)
  const { bulk } = pageTexts
  if (changes.length === 1) return failureText(error)
  return change.data === null ? bulk.notDeleted(name) : bulk.notChanged(name, failureText(error))
}

const NAMES_SHOWN = 10

/** The changed values of a single record, or the names of several records. */
function ChangedValues({ changes }: { readonly changes: readonly RecordChange[] }) {
  const [only, ...others] = changes
  if (only !== undefined && others.length === 0 && only.data !== null) {
    const { data, before = {} } = only
    const hints = Object.entries(findKindAtPath(only.collection)?.fields ?? {})
    return (
      <ChangedFields
        changes={Object.keys(data).map((name) => ({
          name,
          before: before[name],
          after: data[name],
        }))}
        fields={hints.flatMap(([name, { label, widget }]) =>
          widget === undefined ? [] : [{ name, label: label ?? fieldLabel(name), widget }],
        )}
        isNew={false}
      />
    )
  }
  const names = sortByName(changes, ({ name }) => name).map(({ name }) => visibleText(name))
  const shown = names.slice(0, NAMES_SHOWN)
  const more = names.length - shown.length
  return (
    <p class="soft small names">
      {shown.join(', ')}
      {more > 0 ? ` ${texts.preview.more(more)}` : ''}
    </p>
  )
}

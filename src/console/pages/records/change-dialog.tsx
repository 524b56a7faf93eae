import { useSignal } from '@preact/signals'

import { failureText } from '../../app/failure.tsx'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { AccessPreview } from '../access/preview.tsx'
import type { Draft } from './json-values.ts'
import { recordApiPath, writeRecord } from './record-data.ts'

/** A change of one record: a patch of fields, or its deletion. */
export interface RecordChange {
  readonly collection: string
  readonly id: string
  readonly name: string
  /** Null: the record is deleted. */
  readonly data: Draft | null
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
  const { bulk } = texts
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
            onClick={() => void run()}
          >
            {verb}
          </Button>
        </>
      }
    >
      {refused.value.length === 0 ? null : (
        <Notice tone="bad">
          {bulk.refused(refused.value.length, changes.length)}
          <ul>
            {refused.value.map(({ name, reason }) => (
              <li key={name}>
                <strong>{visibleText(name)}</strong> {reason}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      <ChangedNames changes={changes} />
      <AccessPreview
        changes={changes.map(({ collection, id, data }) => ({
          action: data === null ? 'delete' : 'patch',
          collection,
          id,
          data,
        }))}
      />
    </Dialog>
  )
}

function writeOf({ collection, id, data, ifMatch = null }: RecordChange) {
  const path = recordApiPath(collection, id)
  if (data === null) return { method: 'DELETE', path, ifMatch } as const
  return { method: 'PATCH', path, body: data, ifMatch } as const
}

const NAMES_SHOWN = 10

function ChangedNames({ changes }: { readonly changes: readonly RecordChange[] }) {
  const shown = changes.slice(0, NAMES_SHOWN).map(({ name }) => visibleText(name))
  const more = changes.length - shown.length
  return (
    <p class="soft small names">
      {shown.join(', ')}
      {more > 0 ? ` ${texts.preview.more(more)}` : ''}
    </p>
  )
}

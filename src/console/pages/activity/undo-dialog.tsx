import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { isReadOnly, noteLeaderlessRefusal } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import type { AuditDetail } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { AccessEffect } from '../access/preview.tsx'
import { previewUndo, sendUndo } from './activity-data.ts'
import { RecordChanges } from './record-changes.tsx'

/** Undoes an entry of the history, after showing the effect of the undo. */
export function UndoDialog(props: {
  readonly entry: AuditDetail
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { entry, onClose, onDone } = props
  const { undo } = texts.activity
  const loaded = useLoadedData(`undo/${entry.index}`, (signal) => previewUndo(entry.index, signal))
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const { value: preview } = loaded.data
  const run = (): void => {
    if (preview === null) return
    isBusy.value = true
    error.value = null
    sendUndo(entry.index, preview.version)
      .then(() => {
        showToast(undo.done)
        onDone()
        onClose()
      })
      .catch((refusal: unknown) => {
        noteLeaderlessRefusal(refusal)
        error.value = refusal
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  return (
    <Dialog
      title={undo.title}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button
            kind="primary"
            isBusy={isBusy.value}
            refused={
              isReadOnly.value ? texts.banner.refused : preview === null ? undo.notPossible : null
            }
            onClick={run}
          >
            {undo.button}
          </Button>
        </>
      }
    >
      <FailureNotice error={error.value} />
      {loaded.error.value === null ? null : <Failure error={loaded.error.value} />}
      {preview === null ? (
        loaded.error.value === null ? (
          <Skeleton />
        ) : null
      ) : (
        <>
          <p class="soft small">{undo.lead}</p>
          <RecordChanges changes={preview.changes} />
          {preview.omittedChanges > 0 ? (
            <p class="faint small">{texts.activity.omitted(preview.omittedChanges)}</p>
          ) : null}
          {preview.access === null ? null : <AccessEffect found={preview.access} />}
        </>
      )}
    </Dialog>
  )
}

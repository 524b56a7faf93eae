import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { Failure } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { isReadOnly } from '../../app/console-state.ts'
import type { AuditDetail } from '../../client/served-types.ts'
import { Skeleton } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
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
  const { undo } = pageTexts.activity
  const loaded = useLoadedData(`undo/${entry.index}`, (signal) => previewUndo(entry.index, signal))
  const { value: preview } = loaded.data
  const run = async (): Promise<void> => {
    if (preview !== null) await sendUndo(entry.index, preview.version)
  }
  return (
    <ConfirmDialog
      title={undo.title}
      verb={undo.button}
      isDangerous={preview?.changes.some(({ after }) => after === null) === true}
      refused={isReadOnly.value ? texts.banner.refused : preview === null ? undo.notPossible : null}
      run={run}
      done={undo.done}
      onClose={onClose}
      onDone={onDone}
    >
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
            <p class="faint small">{pageTexts.activity.omitted(preview.omittedChanges)}</p>
          ) : null}
          {preview.access === null ? null : <AccessEffect found={preview.access} />}
        </>
      )}
    </ConfirmDialog>
  )
}

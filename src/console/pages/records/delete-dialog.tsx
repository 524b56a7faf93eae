import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { navigateTo, consolePath } from '../../app/navigation.ts'
import { showToast } from '../../app/toasts.tsx'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { TextField } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import { AccessPreview } from '../access/preview.tsx'
import { CurlCommandPanel } from './curl-command-panel.tsx'
import type { Kind } from './kinds.ts'
import { recordPath, writeRecord } from './record-data.ts'
import { blocksDeletion, RecordUses, useRecordUses } from './record-uses.tsx'

/** Deletes a record after the user has typed its name. */
export function DeleteDialog(props: {
  readonly kind: Kind
  readonly id: string
  readonly name: string
  readonly onClose: () => void
}) {
  const { kind, id, name, onClose } = props
  const typed = useSignal('')
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const used = useRecordUses(kind.path, id)
  const isKept = blocksDeletion(used.data.value)
  const call = { method: 'DELETE', path: recordPath(kind.path, id) } as const
  const remove = (): void => {
    isBusy.value = true
    error.value = null
    writeRecord(call)
      .then(() => {
        showToast(texts.record.deleted(name))
        navigateTo(consolePath(kind.path))
      })
      .catch((refusal: unknown) => (error.value = refusal))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  return (
    <Dialog
      title={texts.record.deleteTitle(name)}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button
            kind="danger"
            isBusy={isBusy.value}
            refused={
              isKept ? texts.uses.inUse : typed.value === name ? null : texts.record.typeName
            }
            onClick={remove}
          >
            {texts.record.delete}
          </Button>
        </>
      }
    >
      <FailureNotice error={error.value} />
      <p class="soft">{texts.record.deleteWhat(kind.one)}</p>
      <RecordUses loaded={used} />
      <TextField
        label={texts.manage.typeThis(name)}
        value={typed.value}
        isFocused
        onInput={(value) => (typed.value = value)}
      />
      <AccessPreview changes={[{ action: 'delete', collection: kind.path, id, data: null }]} />
      <CurlCommandPanel call={call} />
    </Dialog>
  )
}

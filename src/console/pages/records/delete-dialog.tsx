import { useSignal } from '@preact/signals'

import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { navigateTo, consolePath } from '../../app/navigation.ts'
import { TextField } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import { AccessPreview } from '../access/preview.tsx'
import { CurlCommandPanel } from './curl-command-panel.tsx'
import type { ConsoleKind } from './kinds.ts'
import { recordApiPath, writeRecord } from './record-data.ts'
import { blocksDeletion, RecordUses, useRecordUses } from './record-uses.tsx'

/** Deletes a record after the user has typed its name. */
export function DeleteDialog(props: {
  readonly kind: ConsoleKind
  readonly id: string
  readonly name: string
  readonly onClose: () => void
}) {
  const { kind, id, name, onClose } = props
  const typed = useSignal('')
  const used = useRecordUses(kind.path, id)
  const isKept = blocksDeletion(used.data.value)
  const call = { method: 'DELETE', path: recordApiPath(kind.path, id) } as const
  return (
    <ConfirmDialog
      title={texts.record.deleteTitle(name)}
      verb={texts.record.delete}
      isDangerous
      refused={isKept ? texts.uses.inUse : typed.value === name ? null : texts.record.typeName}
      run={() => writeRecord(call)}
      done={texts.record.deleted(name)}
      onClose={onClose}
      onDone={() => navigateTo(consolePath(kind.path))}
    >
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
    </ConfirmDialog>
  )
}

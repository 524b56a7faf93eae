import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

import { Button } from '../controls/button.tsx'
import { Dialog } from '../controls/dialog.tsx'
import { texts } from '../texts.ts'
import { noteLeaderlessRefusal } from './console-state.ts'
import { FailureNotice } from './failure.tsx'
import { showToast } from './toasts.tsx'

/** Describes an action, runs it on request, and stays open with the reason if it is refused. */
export function ConfirmDialog(props: {
  readonly title: string
  /** Text of the button that runs the action. */
  readonly verb: string
  readonly isDangerous?: boolean
  /** Why the action cannot be run now. */
  readonly refused?: string | null
  readonly run: () => Promise<unknown>
  /** Message that is shown after the action. */
  readonly done: string
  readonly onClose: () => void
  /** Called after the action; the dialog is closed already. */
  readonly onDone: () => void
  readonly children: ComponentChildren
}) {
  const { title, verb, isDangerous = false, refused = null, run, done, onClose, onDone } = props
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const start = (): void => {
    isBusy.value = true
    error.value = null
    run()
      .then(() => {
        showToast(done)
        onClose()
        onDone()
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
      title={title}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button
            kind={isDangerous ? 'destroy' : 'primary'}
            isBusy={isBusy.value}
            refused={refused}
            onClick={start}
          >
            {verb}
          </Button>
        </>
      }
    >
      <FailureNotice error={error.value} />
      {props.children}
    </Dialog>
  )
}

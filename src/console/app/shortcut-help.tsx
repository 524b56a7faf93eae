import { Button } from '../controls/button.tsx'
import { Dialog } from '../controls/dialog.tsx'
import { texts } from '../texts.ts'
import { goKeys, isHelpOpen } from './shortcuts.ts'

export function ShortcutHelp() {
  const { help } = texts
  const close = (): void => {
    isHelpOpen.value = false
  }
  return (
    <Dialog title={help.title} onClose={close} foot={<Button onClick={close}>{help.close}</Button>}>
      <dl class="keys">
        {help.keys.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
        {[...goKeys].map(([key, { title }]) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  )
}

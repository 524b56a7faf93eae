import type { ComponentChildren } from 'preact'

import { Button } from '../controls/button.tsx'
import { Dialog } from '../controls/dialog.tsx'
import { texts } from '../texts.ts'
import { pageShortcuts, isHelpOpen } from './shortcuts.ts'

export function ShortcutHelp() {
  const { help } = texts
  const close = (): void => {
    isHelpOpen.value = false
  }
  return (
    <Dialog
      title={help.title}
      onClose={close}
      isWide
      foot={<Button onClick={close}>{help.close}</Button>}
    >
      <div class="key-groups">
        <Keys title={texts.actions}>
          {help.keys.map(([key, what]) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </>
          ))}
        </Keys>
        <Keys title={help.goTo}>
          {[...pageShortcuts].map(([key, { title }]) => (
            <>
              <dt>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{title}</dd>
            </>
          ))}
        </Keys>
      </div>
    </Dialog>
  )
}

function Keys(props: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section>
      <h3>{props.title}</h3>
      <dl class="keys">{props.children}</dl>
    </section>
  )
}

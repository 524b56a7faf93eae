import { useSignal } from '@preact/signals'

import { texts } from '../texts.ts'
import { IconButton } from './button.tsx'

const SHOWN_MS = 2_000

/** A text with a copy button. */
export function CopyText({ label, text }: { readonly label: string; readonly text: string }) {
  const isCopied = useSignal(false)
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => {
        isCopied.value = true
        setTimeout(() => (isCopied.value = false), SHOWN_MS)
      },
      () => undefined,
    )
  }
  return (
    <div class="field">
      <span class="label">{label}</span>
      <div class="copy">
        <pre tabIndex={0} aria-label={label}>
          {text}
        </pre>
        <IconButton
          icon={isCopied.value ? 'check' : 'copy'}
          label={isCopied.value ? texts.copied : texts.copy}
          onClick={copy}
        />
      </div>
    </div>
  )
}

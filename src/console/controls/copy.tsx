import { useSignal } from '@preact/signals'

import { texts } from '../texts.ts'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'

const SHOWN_MS = 2_000

/** Text with a copy button. */
export function CopyText({ label, text }: { readonly label: string; readonly text: string }) {
  const { isCopied, copy } = useCopy(text)
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

/** An ID within a line of text, with a copy button. */
export function CopyId(props: {
  readonly id: string
  /** A longer ID is shown truncated, and copied completely. */
  readonly charactersMax?: number
}) {
  const { id, charactersMax = id.length } = props
  const { isCopied, copy } = useCopy(id)
  return (
    <button type="button" class="copy-id mono" title={texts.copyId(id)} onClick={copy}>
      {id.length > charactersMax ? `${id.slice(0, charactersMax)}…` : id}
      <Icon name={isCopied.value ? 'check' : 'copy'} size={12} />
      <span class="visually-hidden">{isCopied.value ? texts.copied : texts.copy}</span>
    </button>
  )
}

/** Copies a string, and briefly shows that it was copied. */
function useCopy(text: string) {
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
  return { isCopied, copy }
}

import { signal } from '@preact/signals'

import { Icon } from '../controls/icon.tsx'
import type { IconName } from '../controls/icon-paths.ts'

interface Toast {
  readonly id: number
  readonly icon: IconName
  readonly text: string
}

const SHOWN_MS = 6_000
const toasts = signal<readonly Toast[]>([])
let nextId = 0

/**
 * Shows a short confirmation of an action. Errors are shown where the action was started instead.
 */
export function showToast(text: string, icon: IconName = 'check'): void {
  nextId += 1
  const toast = { id: nextId, icon, text }
  toasts.value = [...toasts.value.slice(-3), toast]
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one !== toast)
  }, SHOWN_MS)
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, icon, text }) => (
        <div class="toast" key={id}>
          <Icon name={icon} />
          <span>{text}</span>
        </div>
      ))}
    </div>
  )
}

import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'

import { Icon } from './icon.tsx'

/**
 * A row that shows more content on request. Only a separate button expands the row, so its head may
 * contain links.
 */
export function Expandable(props: {
  /** Label of the button that shows more. */
  readonly label: string
  readonly head: ComponentChildren
  readonly body: () => ComponentChildren
}) {
  const { label, head, body } = props
  const isOpen = useSignal(false)
  const id = useId()
  const toggle = (): void => {
    isOpen.value = !isOpen.value
  }
  return (
    <>
      <div
        class="expandable"
        onClick={({ target }) => {
          const isControl = target instanceof Element && target.closest('a, button') !== null
          if (!isControl) toggle()
        }}
      >
        <button
          type="button"
          class="expand"
          aria-expanded={isOpen.value}
          aria-controls={isOpen.value ? id : undefined}
          aria-label={label}
          onClick={toggle}
        >
          <Icon name="down" />
        </button>
        {head}
      </div>
      {isOpen.value ? (
        <div class="event-body" id={id}>
          {body()}
        </div>
      ) : null}
    </>
  )
}

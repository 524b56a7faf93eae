import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

import { Icon } from './icon.tsx'
import type { IconName } from './icon-paths.ts'

/** A button that opens a panel with further controls. */
export function Menu(props: {
  readonly label: string
  readonly icon?: IconName
  /** Shown after the label, such as the number of active filters; '' for none. */
  readonly note?: string
  /** True: a click on a button in the panel closes the panel. */
  readonly closesOnChoice?: boolean
  readonly children: ComponentChildren
}) {
  const { label, icon, note = '', closesOnChoice = false, children } = props
  const isOpen = useSignal(false)
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const panelId = useId()
  useEffect(() => {
    if (!isOpen.value) return undefined
    const close = ({ target }: Event): void => {
      if (!(target instanceof Node) || root.current?.contains(target) !== true) isOpen.value = false
    }
    const types = ['pointerdown', 'focusin'] as const
    for (const type of types) document.addEventListener(type, close)
    return () => {
      for (const type of types) document.removeEventListener(type, close)
    }
  }, [isOpen.value])
  // The focus returns to the button first: a dialog that the choice opens gives the focus back to
  // the element that had it before.
  const closeByUser = (): void => {
    button.current?.focus()
    isOpen.value = false
  }
  return (
    <div
      class="menu"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen.value) return
        event.stopPropagation()
        closeByUser()
      }}
    >
      <button
        ref={button}
        type="button"
        class="button"
        aria-expanded={isOpen.value}
        aria-controls={isOpen.value ? panelId : undefined}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {icon === undefined ? null : <Icon name={icon} />}
        {label}
        {note === '' ? null : <span class="count">{note}</span>}
        <Icon name="down" />
      </button>
      {isOpen.value ? (
        <div
          class="menu-panel"
          id={panelId}
          role="group"
          aria-label={label}
          onClick={({ target }) => {
            const isChoice = target instanceof Element && target.closest('button') !== null
            if (closesOnChoice && isChoice) closeByUser()
          }}
        >
          {children}
        </div>
      ) : null}
    </div>
  )
}

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

/** A modal dialog: the browser keeps the focus in it and restores it afterwards. */
export function Dialog(props: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** Buttons at the bottom; a palette (see `isPalette`) has none. */
  readonly foot?: ComponentChildren
  /**
   * True: a search palette, at a fixed position below the top of the window, without a visible
   * title; a click outside closes it.
   */
  readonly isPalette?: boolean
  /** True: twice as wide, for two columns; the title gets the focus when the dialog opens. */
  readonly isWide?: boolean
}) {
  const { title, onClose, children, foot, isPalette = false, isWide = false } = props
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={`dialog ${isPalette ? 'palette' : ''} ${isWide ? 'wide' : ''}`}
      aria-labelledby={titleId}
      onClick={({ target }) => {
        if (isPalette && target === element.current) onClose()
      }}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class={isPalette ? 'visually-hidden' : 'dialog-head'}>
        <h2 id={titleId} {...(isWide ? { tabIndex: -1, autofocus: true } : {})}>
          {title}
        </h2>
      </div>
      <div class="dialog-body">{children}</div>
      {foot === undefined ? null : <div class="dialog-foot">{foot}</div>}
    </dialog>
  )
}

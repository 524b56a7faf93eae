import type { ComponentChildren } from 'preact'

import { Icon } from './icon.tsx'
import type { IconName } from './icon-paths.ts'

interface ButtonProps {
  readonly onClick?: (() => void) | undefined
  /** `danger` opens a dialog about a dangerous action, and `destroy` runs the action. */
  readonly kind?: 'primary' | 'danger' | 'destroy' | 'quiet' | 'plain'
  readonly icon?: IconName
  readonly type?: 'button' | 'submit'
  readonly form?: string
  readonly isWide?: boolean
  /**
   * Why the button is disabled. A disabled button can still get the focus, and then shows this
   * reason.
   */
  readonly refused?: string | null
  readonly isBusy?: boolean
  /** Whether this choice is selected; only for a button that is one of several choices. */
  readonly isPressed?: boolean
  /** Name for screen readers, if the text alone does not say what the button acts on. */
  readonly label?: string
  readonly children: ComponentChildren
}

export function Button(props: ButtonProps) {
  const { kind = 'plain', icon, type = 'button', refused = null, isBusy = false } = props
  const isOff = refused !== null || isBusy
  return (
    <button
      type={type}
      form={props.form}
      class={`button ${kind === 'plain' ? '' : kind} ${props.isWide === true ? 'wide' : ''}`}
      aria-disabled={isOff}
      aria-busy={isBusy}
      aria-pressed={props.isPressed}
      aria-label={props.label}
      title={refused ?? undefined}
      onClick={(event) => {
        if (isOff) event.preventDefault()
        else props.onClick?.()
      }}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {props.children}
    </button>
  )
}

export function IconButton(props: {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly isExpanded?: boolean
}) {
  return (
    <button
      type="button"
      class="button quiet icon"
      aria-label={props.label}
      title={props.label}
      aria-expanded={props.isExpanded}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  )
}

export function LinkButton(props: {
  readonly href: string
  readonly kind?: 'primary' | 'plain'
  readonly icon?: IconName
  readonly children: ComponentChildren
}) {
  return (
    <a class={`button ${props.kind === 'primary' ? 'primary' : ''}`} href={props.href}>
      {props.icon === undefined ? null : <Icon name={props.icon} />}
      {props.children}
    </a>
  )
}

import { type Signal, useSignal } from '@preact/signals'
import { type ComponentChildren, createContext, type RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** IDs of the required inputs that were empty when the user submitted the form around them. */
export const EmptyInputs = createContext<Signal<ReadonlySet<string>> | null>(null)

/** Required inputs without a value; those in a closed group belong to an object that is not set. */
function emptyInputs(form: HTMLFormElement): readonly HTMLInputElement[] {
  return [...form.querySelectorAll<HTMLInputElement>('[aria-required="true"]')].filter(
    (input) => input.value.trim() === '' && input.closest('details:not([open])') === null,
  )
}

/**
 * A form that, if required inputs are empty, marks each of them and moves the focus to the first
 * one instead of submitting.
 */
export function CheckedForm(props: {
  readonly class: string
  readonly label?: string
  readonly form?: RefObject<HTMLFormElement | null>
  readonly onSubmit: () => void
  readonly children: ComponentChildren
}) {
  const empty = useSignal<ReadonlySet<string>>(new Set())
  const own = useRef<HTMLFormElement>(null)
  const form = props.form ?? own
  const check = (): readonly HTMLInputElement[] => {
    const found = form.current === null ? [] : emptyInputs(form.current)
    empty.value = new Set(found.map(({ id }) => id))
    return found
  }
  // Removes the mark of an input as soon as it has a value.
  useEffect(() => {
    if (empty.peek().size > 0) check()
  })
  return (
    <form
      ref={form}
      class={props.class}
      aria-label={props.label}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        const [first] = check()
        if (first === undefined) return props.onSubmit()
        first.focus({ preventScroll: true })
        first.scrollIntoView({ block: 'center' })
      }}
    >
      <EmptyInputs.Provider value={empty}>{props.children}</EmptyInputs.Provider>
    </form>
  )
}

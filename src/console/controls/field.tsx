import type { ComponentChildren } from 'preact'
import { useContext, useEffect, useId, useRef } from 'preact/hooks'

import { texts } from '../texts.ts'
import { EmptyInputs } from './checked-form.tsx'

export interface FieldProps {
  readonly label: string
  readonly hint?: string | undefined
  readonly fault?: string | null | undefined
  readonly isRequired?: boolean
}

/** Label, control, hint and error of a field, linked for screen readers. */
export function Field(
  props: FieldProps & {
    readonly children: (ids: {
      readonly id: string
      readonly 'aria-describedby': string | undefined
      readonly 'aria-invalid': boolean
      readonly 'aria-required': boolean
    }) => ComponentChildren
  },
) {
  const id = useId()
  const { label, hint, isRequired = false, children } = props
  const isEmpty = useContext(EmptyInputs)?.value.has(id) === true
  const fault = isEmpty ? texts.faults.required : props.fault
  const hasFault = fault !== undefined && fault !== null
  const described = [hint === undefined ? '' : `${id}-hint`, hasFault ? `${id}-fault` : '']
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
        {isRequired ? (
          <span class="faint" aria-hidden="true">
            {' '}
            *
          </span>
        ) : null}
      </label>
      {children({
        id,
        'aria-describedby': described.filter((one) => one !== '').join(' ') || undefined,
        'aria-invalid': hasFault,
        'aria-required': isRequired,
      })}
      {hint === undefined ? null : (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {hasFault ? (
        <span class="fault" id={`${id}-fault`}>
          {fault}
        </span>
      ) : null}
    </div>
  )
}

export function TextField(
  props: FieldProps & {
    readonly value: string
    readonly onInput: (value: string) => void
    readonly type?: 'text' | 'password' | 'number' | 'search'
    readonly name?: string
    readonly autocomplete?: string
    readonly placeholder?: string
    readonly isFocused?: boolean
    readonly isMono?: boolean
    readonly inputMode?: 'numeric' | 'text'
  },
) {
  const input = useRef<HTMLInputElement>(null)
  // The attribute `autofocus` acts only once in a document, so not in a second form.
  useEffect(() => {
    if (props.isFocused === true) input.current?.focus()
  }, [])
  return (
    <Field {...props}>
      {(ids) => (
        <input
          {...ids}
          ref={input}
          class={`input ${props.isMono === true ? 'mono' : ''}`}
          // A cast, because the input's type is a union of string literals that a variable with
          // several of them does not match.
          type={(props.type ?? 'text') as 'text'}
          name={props.name}
          autocomplete={props.autocomplete ?? 'off'}
          placeholder={props.placeholder}
          autofocus={props.isFocused}
          inputmode={props.inputMode}
          spellcheck={false}
          value={props.value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

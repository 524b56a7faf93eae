import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { PasswordInput } from '../../controls/password-input.tsx'
import { texts } from '../../texts.ts'
import { isDeepEqual, stringItems } from './json-values.ts'

/** Attributes that link an input with its label, hint and error. */
export interface InputIds {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean
  readonly 'aria-required'?: boolean
}

export interface LeafProps {
  readonly ids: InputIds
  readonly value: unknown
  readonly onChange: (value: unknown) => void
}

export function TextInput(
  props: LeafProps & { readonly isSecret: boolean; readonly placeholder?: string | undefined },
) {
  const { ids, value, isSecret, placeholder, onChange } = props
  if (isSecret) {
    return (
      <PasswordInput
        ids={ids}
        value={toInputText(value)}
        onInput={(typed) => onChange(orNothing(typed))}
      />
    )
  }
  return (
    <input
      {...ids}
      class="input"
      type="text"
      autocomplete="off"
      spellcheck={false}
      placeholder={placeholder}
      value={toInputText(value)}
      onInput={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
    />
  )
}

export function LongTextInput({ ids, value, onChange }: LeafProps) {
  return (
    <textarea
      {...ids}
      class="input code"
      spellcheck={false}
      value={toInputText(value)}
      onInput={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
    />
  )
}

/** A number; one outside its bounds is marked, and the controller refuses it. */
export function NumberInput(
  props: LeafProps & { readonly minimum: number | null; readonly maximum: number | null },
) {
  const { ids, value, minimum, maximum, onChange } = props
  const isOutside =
    typeof value === 'number' && (value < (minimum ?? -Infinity) || value > (maximum ?? Infinity))
  return (
    <>
      <input
        {...ids}
        class="input"
        aria-invalid={isOutside || ids['aria-invalid']}
        type="number"
        step="any"
        value={toInputText(value)}
        onInput={({ currentTarget }) =>
          onChange(currentTarget.value === '' ? undefined : Number(currentTarget.value))
        }
      />
      {isOutside ? <span class="fault">{texts.form.bounds(minimum, maximum)}</span> : null}
    </>
  )
}

/**
 * An input for a list of strings, one per line. The typed text stays unchanged; empty lines are not
 * part of the value.
 */
export function LinesInput({ ids, value, onChange }: LeafProps) {
  const typed = useSignal(stringItems(value).join('\n'))
  useEffect(() => {
    if (!isDeepEqual(linesOf(typed.value) ?? [], stringItems(value))) {
      typed.value = stringItems(value).join('\n')
    }
  }, [value])
  return (
    <textarea
      {...ids}
      class="input lines"
      placeholder={texts.form.lines}
      spellcheck={false}
      value={typed.value}
      onInput={({ currentTarget }) => {
        typed.value = currentTarget.value
        onChange(linesOf(currentTarget.value))
      }}
    />
  )
}

/**
 * The name of an option, if it has one. Otherwise the name of a protocol in capitals, or the option
 * itself.
 */
function optionText(option: string, names: Readonly<Record<string, string>> = {}): string {
  const name = Object.hasOwn(names, option) ? names[option] : undefined
  return name ?? (/^(tcp|udp)$/.test(option) ? option.toUpperCase() : option)
}

export function ChoiceInput(
  props: LeafProps & {
    readonly options: readonly string[]
    readonly names: Readonly<Record<string, string>>
    readonly mayBeNone: boolean
  },
) {
  const { ids, options, names, mayBeNone, value, onChange } = props
  return (
    <select
      {...ids}
      class="input"
      value={toInputText(value)}
      onChange={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
    >
      {mayBeNone ? <option value="">{texts.form.none}</option> : null}
      {options.map((option) => (
        <option key={option} value={option}>
          {optionText(option, names)}
        </option>
      ))}
    </select>
  )
}

/** Check boxes for several values of a fixed set. */
export function ChoicesInput(props: LeafProps & { readonly options: readonly string[] }) {
  const { ids, options, value, onChange } = props
  const chosen = stringItems(value)
  return (
    <div class="row" role="group" id={ids.id} aria-describedby={ids['aria-describedby']}>
      {options.map((option) => (
        <label key={option} class="check">
          <input
            type="checkbox"
            aria-invalid={ids['aria-invalid']}
            checked={chosen.includes(option)}
            onChange={({ currentTarget }) => {
              const others = chosen.filter((one) => one !== option)
              onChange(currentTarget.checked ? [...others, option] : others)
            }}
          />
          <span>{optionText(option)}</span>
        </label>
      ))}
    </div>
  )
}

export function CheckboxInput(props: {
  readonly label: string
  readonly hint: string | undefined
  readonly fault: string | null
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.isOn}
        aria-invalid={props.fault !== null}
        onChange={({ currentTarget }) => props.onChange(currentTarget.checked)}
      />
      <span>
        <span class="label">{props.label}</span>
        {props.hint === undefined ? null : <span class="hint block">{props.hint}</span>}
        {props.fault === null ? null : <span class="fault block">{props.fault}</span>}
      </span>
    </label>
  )
}

/** A field for JSON. The text stays as typed; the field's value is the parsed JSON. */
export function JsonInput(props: LeafProps & { readonly onBad: (isBad: boolean) => void }) {
  const { ids, value, onChange, onBad } = props
  const typed = useSignal(jsonText(value))
  const fault = useSignal<string | null>(null)
  useEffect(() => {
    const parsed = parsedJson(typed.value)
    if (parsed.fault === null && !isDeepEqual(parsed.value, value)) typed.value = jsonText(value)
  }, [value])
  useEffect(() => () => onBad(false), [])
  return (
    <>
      <textarea
        {...ids}
        class="input code"
        aria-invalid={fault.value !== null || ids['aria-invalid']}
        spellcheck={false}
        placeholder="{}"
        rows={Math.min(18, Math.max(3, typed.value.split('\n').length))}
        value={typed.value}
        onInput={({ currentTarget }) => {
          typed.value = currentTarget.value
          const parsed = parsedJson(currentTarget.value)
          fault.value = parsed.fault
          onBad(parsed.fault !== null)
          if (parsed.fault === null) onChange(parsed.value)
        }}
      />
      {fault.value === null ? null : <span class="fault">{fault.value}</span>}
    </>
  )
}

function jsonText(value: unknown): string {
  const isEmpty = value === undefined || value === null || isDeepEqual(value, {})
  return isEmpty ? '' : JSON.stringify(value, null, 2)
}

function parsedJson(text: string): { readonly value: unknown; readonly fault: string | null } {
  if (text.trim() === '') return { value: undefined, fault: null }
  try {
    return { value: JSON.parse(text) as unknown, fault: null }
  } catch (error) {
    return { value: undefined, fault: texts.form.badJson(String((error as Error).message)) }
  }
}

export function toInputText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function orNothing(text: string): string | undefined {
  return text === '' ? undefined : text
}

function linesOf(text: string): string[] | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return lines.length === 0 ? undefined : lines
}

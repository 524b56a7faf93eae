import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { EndInput } from '../../controls/end-input.tsx'
import { Field } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import {
  type Draft,
  faultBelow,
  type FormFault,
  isObject,
  isSame,
  withValue,
} from './form-model.ts'
import type { FormField } from './form-field.ts'
import { RoleEndsInput } from './role-ends.tsx'
import { ReferenceInput, RolesInput } from './reference-inputs.tsx'

interface FormProps {
  readonly fields: readonly FormField[]
  readonly draft: Draft
  readonly fault: FormFault | null
  readonly onChange: (draft: Draft) => void
  /**
   * Reports whether a field contains text that is not valid JSON yet. While one does, nothing can
   * be saved.
   */
  readonly onBadJson: (name: string, isBad: boolean) => void
}

/** Shows an input for each field of a schema. */
export function FormFields(props: FormProps) {
  const { fields, draft, fault, onChange, onBadJson } = props
  return (
    <>
      {fields.map((field) => (
        <FormControl
          key={field.name}
          field={field}
          draft={draft}
          fault={fault?.name === field.name ? fault : null}
          onChange={(value) => onChange(withValue(draft, field.name, value))}
          onBadJson={onBadJson}
        />
      ))}
    </>
  )
}

interface ControlProps {
  readonly field: FormField
  readonly draft: Draft
  readonly fault: FormFault | null
  readonly onChange: (value: unknown) => void
  readonly onBadJson: (name: string, isBad: boolean) => void
}

function FormControl(props: ControlProps) {
  const { field, draft, fault, onChange } = props
  const { widget, label, isRequired } = field
  const value = draft[field.name]
  const hint = field.help ?? undefined
  if (widget.is === 'flag') {
    return (
      <Flag
        label={label}
        hint={hint}
        fault={fault?.reason ?? null}
        isOn={value === true}
        onChange={onChange}
      />
    )
  }
  if (widget.is === 'group') return <Group {...props} fields={widget.fields} />
  return (
    <Field label={label} hint={hint} fault={fault?.reason ?? null} isRequired={isRequired}>
      {(ids) => <Control {...props} ids={ids} value={value} />}
    </Field>
  )
}

type Ids = Parameters<Parameters<typeof Field>[0]['children']>[0]

function Control(props: ControlProps & { readonly ids: Ids; readonly value: unknown }) {
  const { field, draft, ids, value, onChange, onBadJson } = props
  const { widget, isRequired } = field
  switch (widget.is) {
    case 'choice':
      return (
        <ChoiceInput
          ids={ids}
          options={widget.options}
          mayBeNone={widget.mayBeNone || !isRequired}
          chosen={textOf(value)}
          onChange={onChange}
        />
      )
    case 'number':
      return (
        <input
          {...ids}
          class="input"
          type="number"
          value={textOf(value)}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === '' ? undefined : Number(currentTarget.value))
          }
        />
      )
    case 'longText':
      return (
        <textarea
          {...ids}
          class="input code"
          spellcheck={false}
          value={textOf(value)}
          onInput={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
        />
      )
    case 'json':
      return (
        <JsonInput
          ids={ids}
          value={value}
          onChange={onChange}
          onBad={(isBad) => onBadJson(field.name, isBad)}
        />
      )
    case 'texts':
      return (
        <textarea
          {...ids}
          class="input lines"
          placeholder={texts.form.lines}
          spellcheck={false}
          value={textItems(value).join('\n')}
          onInput={({ currentTarget }) => onChange(linesOf(currentTarget.value))}
        />
      )
    case 'reference':
    case 'references':
      return (
        <ReferenceInput
          ids={ids}
          kind={widget.kind}
          isSingle={widget.is === 'reference'}
          chosen={typeof value === 'string' ? [value] : textItems(value)}
          onChange={(chosen) => onChange(widget.is === 'reference' ? chosen[0] : chosen)}
        />
      )
    case 'roles':
      return (
        <RolesInput
          ids={ids}
          kind={widget.kind}
          isOwn={widget.isOwn}
          semantic={textOf(draft['semantic']) || 'AllOf'}
          chosen={textItems(value)}
          onChange={onChange}
        />
      )
    case 'end':
      return <EndInput ids={ids} value={value} about="" onChange={onChange} />
    case 'roleEnds':
      return <RoleEndsInput ids={ids} draft={draft} value={value} onChange={onChange} />
    case 'text':
    case 'secret':
      return <TextInput {...props} isSecret={widget.is === 'secret'} />
    case 'flag':
    case 'group':
      return null
  }
}

function TextInput(
  props: ControlProps & { readonly ids: Ids; readonly value: unknown; readonly isSecret: boolean },
) {
  const { ids, field, value, isSecret, onChange } = props
  return (
    <input
      {...ids}
      class="input"
      // A cast, because the input's type is a union of string literals that a variable with two of
      // them does not match.
      type={(isSecret ? 'password' : 'text') as 'text'}
      autocomplete={isSecret ? 'new-password' : 'off'}
      spellcheck={false}
      required={field.isRequired}
      value={textOf(value)}
      onInput={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
    />
  )
}

function ChoiceInput(props: {
  readonly ids: Ids
  readonly options: readonly string[]
  readonly mayBeNone: boolean
  readonly chosen: string
  readonly onChange: (value: unknown) => void
}) {
  const { ids, options, mayBeNone, chosen, onChange } = props
  return (
    <select
      {...ids}
      class="input"
      value={chosen}
      onChange={({ currentTarget }) => onChange(orNothing(currentTarget.value))}
    >
      {mayBeNone ? <option value="">{texts.form.none}</option> : null}
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  )
}

function Flag(props: {
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

/** An object with nested fields. An optional object is closed until the user opens it. */
function Group(props: ControlProps & { readonly fields: readonly FormField[] }) {
  const { field, fields, draft, fault, onChange, onBadJson } = props
  const value = draft[field.name]
  const inner = isObject(value) ? value : null
  const below = faultBelow(fault, fields)
  return (
    <details class="group" open={inner !== null || fault !== null}>
      <summary aria-invalid={fault !== null && below === null}>{field.label}</summary>
      <div class="form">
        {fault === null || below !== null ? null : <span class="fault">{fault.reason}</span>}
        <FormFields
          fields={fields}
          draft={inner ?? {}}
          fault={below}
          onChange={(changed) => onChange(Object.keys(changed).length === 0 ? undefined : changed)}
          onBadJson={(name, isBad) => onBadJson(`${field.name}.${name}`, isBad)}
        />
      </div>
    </details>
  )
}

/** A field for JSON. The text stays as typed; the field's value is the parsed JSON. */
export function JsonInput(props: {
  readonly ids: Ids
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly onBad: (isBad: boolean) => void
}) {
  const { ids, value, onChange, onBad } = props
  const typed = useSignal(jsonText(value))
  const fault = useSignal<string | null>(null)
  useEffect(() => {
    const parsed = parsedJson(typed.value)
    if (parsed.fault === null && !isSame(parsed.value, value)) typed.value = jsonText(value)
  }, [value])
  return (
    <>
      <textarea
        {...ids}
        class="input code"
        aria-invalid={fault.value !== null || ids['aria-invalid']}
        spellcheck={false}
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
  const isEmpty = value === undefined || value === null || isSame(value, {})
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

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

export function textItems(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function orNothing(text: string): string | undefined {
  return text === '' ? undefined : text
}

function linesOf(text: string): string[] | undefined {
  const lines = text.split('\n').map((line) => line.trimStart())
  return lines.every((line) => line === '') ? undefined : lines
}

import { useSignal } from '@preact/signals'
import { Fragment } from 'preact'
import { useRef } from 'preact/hooks'

import { ExpiryInput } from '../../controls/expiry-input.tsx'
import { Button, IconButton } from '../../controls/button.tsx'
import { Field } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import { ConfigDataInput } from './config-data.tsx'
import { matchesSchema } from './data-schema.ts'
import {
  canWidgetShow,
  groupFieldFault,
  itemFault,
  type FormFault,
  isFieldShown,
  newListItem,
} from './form-model.ts'
import { jsonWidget } from './field-hints.ts'
import type { FormField, ValueVariant, GroupWidget, Widget } from './form-field.ts'
import { type Draft, isObject, stringItems, withMember } from './json-values.ts'
import {
  ChoiceInput,
  ChoicesInput,
  CheckboxInput,
  type InputIds,
  JsonInput,
  LinesInput,
  LongTextInput,
  NumberInput,
  toInputText,
  TextInput,
} from './leaf-inputs.tsx'
import { ControllerInput, EnrollmentInput, PermissionsInput } from './special-inputs.tsx'
import { hasExpiringAttributes, RoleExpiryInput } from './role-expiry-input.tsx'
import { ReferenceInput, RolesInput, ServiceValuesInput } from './reference-inputs.tsx'

export interface FormProps {
  readonly fields: readonly FormField[]
  readonly draft: Draft
  readonly fault: FormFault | null
  /** The form of a new or existing record, or a form within one. */
  readonly of: 'newRecord' | 'record' | 'part'
  /** Fields that are required because of the values of others. */
  readonly required?: readonly string[]
  readonly onChange: (draft: Draft) => void
  /**
   * Reports whether a field contains text that is not valid JSON yet. While one does, nothing can
   * be saved.
   */
  readonly onBadJson: (name: string, isBad: boolean) => void
}

/** Shows an input for each field of a schema. */
export function FormFields(props: FormProps) {
  const { fields, draft, fault, of, required = [], onChange, onBadJson } = props
  return (
    <>
      {fields
        .filter(
          (field) => isFieldShown(field, draft) && !(field.isFixed === true && of === 'record'),
        )
        .map((field) => (
          <Fragment key={field.name}>
            {field.heading === undefined ? null : <h3 class="form-heading">{field.heading}</h3>}
            <FormControl
              field={
                required.includes(field.name)
                  ? { ...field, isRequired: true, isStarred: true }
                  : field
              }
              draft={draft}
              fault={fault?.name === field.name ? fault : null}
              of={of}
              onChange={(value) => onChange(withMember(draft, field.name, value))}
              onBadJson={onBadJson}
            />
          </Fragment>
        ))}
    </>
  )
}

interface ControlProps extends Pick<FormProps, 'draft' | 'fault' | 'of' | 'onBadJson'> {
  readonly field: FormField
  readonly onChange: (value: unknown) => void
}

function FormControl(props: ControlProps) {
  const { field, draft, fault, onChange } = props
  const { widget, label, isStarred } = field
  const value = draft[field.name]
  const hint = hintOf(field)
  if (widget.is === 'roleEnds' && !hasExpiringAttributes(draft, value)) return null
  if (canWidgetShow(widget, value)) {
    switch (widget.is) {
      case 'flag':
        return (
          <CheckboxInput
            label={label}
            hint={hint}
            fault={fault?.reason ?? null}
            isOn={value === true}
            onChange={(isOn) => onChange(isOn || !widget.isOnlyTrue ? isOn : undefined)}
          />
        )
      case 'group':
        return <Group {...props} widget={widget} />
      case 'rows':
        return <Rows {...props} item={widget.item} />
      case 'oneOf':
        return <OneOf {...props} options={widget.options} />
      case 'configData':
        return <ConfigData {...props} />
      case 'enrollment':
        return <EnrollmentInput label={label} value={value} fault={fault} onChange={onChange} />
      default:
    }
  }
  const reason = fault === null ? null : texts.faults.at(fault.below, fault.reason)
  return (
    <Field label={label} hint={hint} fault={reason} isRequired={isStarred}>
      {(ids) => <Control {...props} ids={ids} value={value} />}
    </Field>
  )
}

function hintOf({ help, widget }: FormField): string | undefined {
  const bounds =
    widget.is === 'number' && widget.minimum !== null && widget.maximum !== null
      ? texts.form.bounds(widget.minimum, widget.maximum)
      : null
  const json = widget === jsonWidget && help === null ? texts.form.jsonObject : null
  const hints = [help, bounds, json].filter((one) => one !== null && one !== '')
  return hints.length === 0 ? undefined : hints.join(' ')
}

function Control(props: ControlProps & { readonly ids: InputIds; readonly value: unknown }) {
  const { field, draft, ids, value, onChange, onBadJson } = props
  const onBad = (isBad: boolean): void => onBadJson(field.name, isBad)
  const leaf = { ids, value, onChange }
  const widget: Widget = canWidgetShow(field.widget, value) ? field.widget : { is: 'json' }
  switch (widget.is) {
    case 'choice':
      return (
        <ChoiceInput
          {...leaf}
          options={widget.options}
          names={widget.names}
          mayBeNone={widget.mayBeNone || !field.isRequired || toInputText(value) === ''}
        />
      )
    case 'choices':
      return <ChoicesInput {...leaf} options={widget.options} />
    case 'number':
      return <NumberInput {...leaf} minimum={widget.minimum} maximum={widget.maximum} />
    case 'longText':
      return <LongTextInput {...leaf} />
    case 'texts':
      return (
        <LinesInput
          {...leaf}
          onChange={(lines) => onChange(lines ?? (field.isRequired ? [] : undefined))}
        />
      )
    case 'reference':
    case 'references':
      return (
        <ReferenceInput
          ids={ids}
          kind={widget.kind}
          isSingle={widget.is === 'reference'}
          isSelect={widget.isSelect === true}
          chosen={typeof value === 'string' && value !== '' ? [value] : stringItems(value)}
          onChange={(chosen) => onChange(widget.is === 'reference' ? chosen[0] : chosen)}
        />
      )
    case 'roles':
      return (
        <RolesInput
          ids={ids}
          kind={widget.kind}
          isOwn={widget.isOwn}
          semantic={toInputText(draft['semantic']) || 'AllOf'}
          chosen={stringItems(value)}
          onChange={onChange}
        />
      )
    case 'byService':
      return <ServiceValuesInput {...leaf} options={widget.options} />
    case 'permissions':
      return <PermissionsInput {...leaf} />
    case 'controller':
      return <ControllerInput {...leaf} />
    case 'end':
      return <ExpiryInput ids={ids} value={value} about="" onChange={onChange} />
    case 'roleEnds':
      return <RoleExpiryInput ids={ids} draft={draft} value={value} onChange={onChange} />
    case 'text':
    case 'secret':
      return (
        <TextInput {...leaf} isSecret={widget.is === 'secret'} placeholder={field.placeholder} />
      )
    default:
      return <JsonInput {...leaf} onBad={onBad} />
  }
}

/** An object with nested fields. If an optional object has no value, the user has to open it. */
function Group(props: ControlProps & { readonly widget: GroupWidget }) {
  const { field, widget, draft, fault, onChange, onBadJson } = props
  const value = draft[field.name]
  const inner = isObject(value) ? value : null
  const below = groupFieldFault(fault, widget.fields)
  const content = (
    <>
      {field.help === null || field.help === '' ? null : <span class="hint">{field.help}</span>}
      {fault === null || below !== null ? null : <span class="fault">{fault.reason}</span>}
      <Members
        widget={inner === null && !field.isRequired ? withoutStars(widget) : widget}
        value={inner ?? {}}
        fault={below}
        onChange={(changed) =>
          onChange(Object.keys(changed).length === 0 && !field.isRequired ? undefined : changed)
        }
        onBadJson={(name, isBad) => onBadJson(`${field.name}.${name}`, isBad)}
      />
    </>
  )
  const isInvalid = fault !== null && below === null
  if (field.isRequired) {
    return (
      <fieldset class="group" aria-invalid={isInvalid}>
        <legend>{field.label}</legend>
        <div class="form">{content}</div>
      </fieldset>
    )
  }
  return (
    <details class="group" open={inner !== null || fault !== null}>
      <summary aria-invalid={isInvalid}>{field.label}</summary>
      <div class="form">{content}</div>
    </details>
  )
}

/** The group of an object that is not set: none of its fields needs a value. */
function withoutStars(widget: GroupWidget): GroupWidget {
  return { ...widget, fields: widget.fields.map((field) => ({ ...field, isStarred: false })) }
}

/** The fields of an object, and the names of members for which the schema has no field. */
function Members(
  props: Pick<FormProps, 'fault' | 'onChange' | 'onBadJson'> & {
    readonly widget: GroupWidget
    readonly value: Draft
    /**
     * True: optional members that have no value at first are in a group that the user opens, unless
     * they are few.
     */
    readonly hidesUnused?: boolean
  },
) {
  const { widget, value, fault, hidesUnused = false, onChange, onBadJson } = props
  const { fields, requires } = widget
  const required = requires?.(value) ?? []
  const common = { draft: value, fault, of: 'part', required, onChange, onBadJson } as const
  // Determined once, because a field must not move while the user types into it.
  const unused = useRef<ReadonlySet<string> | null>(null)
  unused.current ??= new Set(
    fields
      .filter(({ name, isRequired }) => {
        return hidesUnused && !isRequired && !required.includes(name) && isUnset(value[name])
      })
      .map(({ name }) => name),
  )
  const unusedNow = fields.filter(
    ({ name }) => unused.current?.has(name) === true && !required.includes(name),
  )
  const rare =
    unusedNow.length < UNUSED_MIN ? unusedNow.filter(({ isRare }) => isRare === true) : unusedNow
  const others = Object.keys(value).filter((one) => !fields.some(({ name }) => name === one))
  return (
    <>
      <FormFields {...common} fields={fields.filter((field) => !rare.includes(field))} />
      {rare.length === 0 ? null : (
        <details class="group" open={rare.some(({ name }) => name === fault?.name)}>
          <summary>{texts.form.moreOptions}</summary>
          <div class="form">
            <FormFields {...common} fields={rare} />
          </div>
        </details>
      )}
      {others.length === 0 ? null : <span class="hint">{texts.form.others(others)}</span>}
    </>
  )
}

/** If fewer fields than this are unused, only the rare ones of them are in the group. */
const UNUSED_MIN = 5

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === false || value === ''
}

/** A list with a form for each item. */
function Rows(props: ControlProps & { readonly item: FormField }) {
  const { field, item, draft, fault, onChange, onBadJson } = props
  const value = draft[field.name]
  const rows: readonly unknown[] = Array.isArray(value) ? value : []
  const change = (next: readonly unknown[]): void =>
    onChange(next.length === 0 && !field.isRequired ? undefined : next)
  const isOfItem = rows.some((_, at) => itemFault(fault, at) !== null)
  return (
    <fieldset class="rows" aria-invalid={fault !== null && !isOfItem}>
      <legend class="label">
        {field.label}
        {field.isStarred ? <span aria-hidden="true"> *</span> : null}
      </legend>
      {rows.map((row, at) => (
        <div class="rows-item" key={at} role="group" aria-label={texts.form.row(field.label, at)}>
          <div class={hasShortForm(item) ? 'form short' : 'form'}>
            <Item
              field={{
                ...(at === 0 ? item : withoutHelp(item)),
                name: String(at),
                isRequired: true,
              }}
              value={row}
              fault={itemFault(fault, at)}
              onChange={(changed) => change(rows.map((one, k) => (k === at ? changed : one)))}
              onBadJson={(name, isBad) => onBadJson(`${field.name}.${name}`, isBad)}
            />
          </div>
          <IconButton
            icon="trash"
            label={texts.form.removeRow(field.label, at)}
            onClick={() => change(rows.filter((_, k) => k !== at))}
          />
        </div>
      ))}
      {field.help === null || field.help === '' ? null : <span class="hint">{field.help}</span>}
      {fault === null || isOfItem ? null : (
        <span class="fault">{texts.faults.at(fault.below, fault.reason)}</span>
      )}
      <Button
        icon="plus"
        label={texts.form.addRowTo(field.label)}
        onClick={() => change([...rows, newListItem(item.widget) ?? null])}
      >
        {texts.form.addRow}
      </Button>
    </fieldset>
  )
}

/**
 * An item without help texts: only the first item of a list shows them, because they would be the
 * same for each item.
 */
function withoutHelp(item: FormField): FormField {
  const { widget } = item
  if (widget.is !== 'group') return item
  const fields = widget.fields.map((field) => ({ ...field, help: null }))
  return { ...item, widget: { ...widget, fields } }
}

/** Whether the fields of an item fit next to each other in one row. */
function hasShortForm({ widget }: FormField): boolean {
  if (widget.is !== 'group' || widget.fields.length > FIELDS_IN_ROW_MAX) return false
  return widget.fields.every((one) => ['number', 'text', 'choice', 'texts'].includes(one.widget.is))
}

const FIELDS_IN_ROW_MAX = 3

interface ItemProps extends Pick<FormProps, 'onBadJson' | 'fault'> {
  /** Field for the item; the field's name is the index of the item. */
  readonly field: FormField
  readonly value: unknown
  readonly onChange: (value: unknown) => void
}

/** An item of a list, or an option of a value; the fields of an object need no frame. */
function Item({ field, value, fault, onChange, onBadJson }: ItemProps) {
  const { widget } = field
  if (widget.is === 'group' && canWidgetShow(widget, value)) {
    const below = groupFieldFault(fault, widget.fields)
    return (
      <>
        {fault === null || below !== null ? null : (
          <span class="fault" aria-invalid="true">
            {texts.faults.at(fault.below, fault.reason)}
          </span>
        )}
        <Members
          widget={widget}
          value={isObject(value) ? value : {}}
          fault={below}
          onChange={onChange}
          onBadJson={(name, isBad) => onBadJson(`${field.name}.${name}`, isBad)}
        />
      </>
    )
  }
  return (
    <FormControl
      field={field}
      draft={{ [field.name]: value }}
      fault={fault}
      of="part"
      onChange={(changed) => onChange(changed ?? null)}
      onBadJson={onBadJson}
    />
  )
}

/** A value that has one of several variants. */
function OneOf(props: ControlProps & { readonly options: readonly ValueVariant[] }) {
  const { field, options, draft, fault, onChange, onBadJson } = props
  const value = draft[field.name]
  const picked = useSignal<number | null>(null)
  const fits = (option: ValueVariant): boolean =>
    value === undefined || value === null || matchesSchema(option.schema, value)
  const last = picked.value === null ? undefined : options[picked.value]
  const first = options.findIndex(fits)
  const chosen =
    last !== undefined && canWidgetShow(last.field.widget, value) ? picked.value : first
  const option = options[chosen ?? 0]
  const labels = options.map((one) => one.field.label)
  return (
    <fieldset class="rows">
      <legend class="label">{field.label}</legend>
      <Field label={texts.form.kind} isRequired={false}>
        {(ids) => (
          <select
            {...ids}
            class="input"
            value={String(chosen)}
            onChange={({ currentTarget }) => {
              picked.value = Number(currentTarget.value)
              const next = options[picked.value]
              if (next !== undefined && !canWidgetShow(next.field.widget, value)) {
                onChange(newListItem(next.field.widget))
              }
            }}
          >
            {labels.map((label, at) => (
              <option key={at} value={String(at)}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {option === undefined ? null : (
        <Item
          key={option.field.label}
          field={{ ...option.field, name: field.name, isRequired: field.isRequired }}
          value={value}
          fault={fault}
          onChange={onChange}
          onBadJson={onBadJson}
        />
      )}
    </fieldset>
  )
}

/** The data of a config, as a form that follows from the schema of its type, or as JSON. */
function ConfigData(props: ControlProps) {
  const { field, draft, fault, of, onChange, onBadJson } = props
  return (
    <ConfigDataInput
      field={field}
      typeId={toInputText(draft['configTypeId'])}
      value={draft[field.name]}
      isNew={of === 'newRecord'}
      fault={fault}
      onChange={onChange}
      onBad={(isBad) => onBadJson(field.name, isBad)}
      renderForm={(widget, value) => {
        const below = groupFieldFault(fault, widget.fields)
        return (
          <>
            {fault === null || below !== null ? null : (
              <span class="fault" aria-invalid="true">
                {texts.faults.at(fault.below, fault.reason)}
              </span>
            )}
            <Members
              widget={widget}
              value={value}
              fault={below}
              hidesUnused
              onChange={onChange}
              onBadJson={(name, isBad) => onBadJson(`${field.name}.${name}`, isBad)}
            />
          </>
        )
      }}
    />
  )
}

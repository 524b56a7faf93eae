import { faultText, type RefusedField } from '../../app/fault-text.ts'
import type { ServedSchema } from '../../client/api-document.ts'
import { texts } from '../../texts.ts'
import { conditionalRequirements, matchesSchema } from './data-schema.ts'
import type { FieldHint } from './field-hints.ts'
import type { ConsoleKind } from './kinds.ts'
import type { FormField, ValueVariant, GroupWidget, Widget } from './form-field.ts'
import { type Draft, isObject, isDeepEqual, stringItems } from './json-values.ts'

/** Labels for OpenZiti field names that cannot be split into words. */
const labels: Readonly<Record<string, string>> = {
  ott: 'One-time token',
  ottca: 'Certificate of a CA',
  updb: 'User name and password',
  username: 'User name',
  extJwt: 'External JWT',
  cert: 'Certificate',
  certPem: 'Certificate',
  sdkInfo: 'Client',
  serverCertPem: 'Server certificate',
  unverifiedCertPem: 'Certificate that waits for its proof',
  unverifiedFingerprint: 'Fingerprint of the waiting certificate',
  ctrlChanListeners: 'Control channel listeners',
  maxIdleTimeMillis: 'Idle time',
  isAuthEnabled: 'Its certificates log in',
  isAutoCaEnrollmentEnabled: 'Devices enroll by themselves with a certificate',
  isOttCaEnrollmentEnabled: 'Devices enroll with a token and a certificate',
  oidc: 'OpenID Connect',
  typeId: 'Type',
}

/** Title of a column in a list of records. */
export function columnLabel(
  kind: Pick<ConsoleKind, 'fields' | 'titleLabel'>,
  name: string,
): string {
  // Records without a name have a title in the place of their ID.
  if (name === 'id') return kind.titleLabel
  const { fields } = kind
  const known = texts.list.columns[name] ?? fields[name]?.label
  return known ?? fieldLabel(name.replace(/Id$/, ''))
}

/** Splits a name like `isTunnelerEnabled` into words. */
export function fieldLabel(name: string): string {
  const label = Object.hasOwn(labels, name) ? labels[name] : undefined
  if (label !== undefined) return label
  const words = name
    .replace(/^(is|has)(?=[A-Z])/, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(' ')
    .map((word) => (/^[A-Z]{2,}$/.test(word) ? word : word.toLowerCase()))
    .join(' ')
  const known = words.replace(
    /\b(id|api|jwt|url|jwks|pem|ca|mfa|os|ott|ip|mac|totp|http|tcp|udp)\b/g,
    (word) => word.toUpperCase(),
  )
  return known.slice(0, 1).toUpperCase() + known.slice(1)
}

/**
 * The fields of a body: first those with hints, in the order of the hints, then the required
 * fields.
 */
export function buildFormFields(
  schema: ServedSchema,
  kind: Pick<ConsoleKind, 'fields' | 'hidden'>,
): FormField[] {
  const required = new Set(schema.required)
  const hinted = Object.keys(kind.fields)
  const place = (name: string): number => {
    const at = hinted.indexOf(name)
    if (at !== -1) return at
    return required.has(name)
      ? hinted.length
      : name === 'tags'
        ? hinted.length + 2
        : hinted.length + 1
  }
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !kind.hidden.includes(name))
    .sort(([a], [b]) => place(a) - place(b))
    .map(([name, property]) => fieldOf(name, property, required.has(name), kind.fields[name] ?? {}))
}

function fieldOf(
  name: string,
  schema: ServedSchema,
  isRequired: boolean,
  hint: FieldHint,
): FormField {
  const widget = widgetOf(name, schema, hint)
  const mayBeEmpty = lists.has(widget.is) && (schema.minItems ?? 0) === 0
  return {
    name,
    label: hint.label ?? fieldLabel(name),
    help: hint.help ?? schema.description ?? null,
    isRequired: isRequired || hint.isRequired === true,
    isStarred: hint.isRequired === true || (isRequired && !mayBeEmpty),
    isNullable: typesOf(schema).includes('null'),
    widget,
    ...(hint.initial === undefined ? {} : { initial: hint.initial }),
    ...(hint.shownIf === undefined ? {} : { shownIf: hint.shownIf }),
    ...(hint.isFixed === undefined ? {} : { isFixed: hint.isFixed }),
    ...(hint.placeholder === undefined ? {} : { placeholder: hint.placeholder }),
    ...(hint.isRare === undefined ? {} : { isRare: hint.isRare }),
    ...(hint.heading === undefined ? {} : { heading: hint.heading }),
  }
}

function typesOf({ type }: ServedSchema): readonly string[] {
  return typeof type === 'string' ? [type] : (type ?? [])
}

/** Widgets whose value is a list. */
const lists: ReadonlySet<Widget['is']> = new Set([
  'choices',
  'references',
  'roles',
  'rows',
  'texts',
])

const LONG_CHARACTERS = /Pem$|^csr$/
const SECRET = /password|secret/i

function widgetOf(name: string, schema: ServedSchema, hint: FieldHint): Widget {
  if (hint.widget !== undefined) return hint.widget
  const options = (schema.oneOf ?? schema.anyOf)?.filter(({ type }) => type !== 'null')
  const [only, ...others] = options ?? []
  if (options !== undefined && others.length > 0) {
    return { is: 'oneOf', options: options.map(optionOf) }
  }
  if (only !== undefined) return widgetOf(name, only, hint)
  if (schema.enum !== undefined) return enumWidget(schema.enum, hint)
  const [type, ...more] = typesOf(schema).filter((one) => one !== 'null')
  if (more.length > 0) return { is: 'json' }
  switch (type) {
    case 'boolean':
      return { is: 'flag', isOnlyTrue: schema.const === true }
    case 'integer':
    case 'number':
      return { is: 'number', minimum: schema.minimum ?? null, maximum: schema.maximum ?? null }
    case 'array':
      return listWidget(name, schema.items, hint)
    case 'object':
      return groupWidget(schema, hint) ?? { is: 'json' }
    case 'string':
      if (SECRET.test(name)) return { is: 'secret' }
      return { is: LONG_CHARACTERS.test(name) ? 'longText' : 'text' }
    default:
      return (schema.properties === undefined ? null : groupWidget(schema, hint)) ?? { is: 'json' }
  }
}

function enumWidget(values: readonly unknown[], hint: FieldHint): Widget {
  const names = hint.optionTexts ?? {}
  const options = values.filter((one): one is string => typeof one === 'string' && one !== '')
  const others = values.filter((one) => !options.includes(one as string))
  if (options.length === 0) {
    return isDeepEqual(others, [true]) ? { is: 'flag', isOnlyTrue: true } : { is: 'json' }
  }
  const hasOnlyTexts = others.every((one) => one === '' || one === null)
  return hasOnlyTexts
    ? { is: 'choice', options, names, mayBeNone: others.length > 0 }
    : { is: 'json' }
}

function listWidget(name: string, items: ServedSchema | undefined, hint: FieldHint): Widget {
  if (items === undefined) return { is: 'json' }
  const item = fieldOf(name, { ...items, description: '' }, false, { fields: hint.fields ?? {} })
  const { widget } = item
  switch (widget.is) {
    case 'choice':
      return { is: 'choices', options: widget.options }
    case 'text':
      return { is: 'texts' }
    case 'json':
      return { is: 'json' }
    default:
      return { is: 'rows', item }
  }
}

/** Null: the schema names no members, so that only JSON can express the object. */
export function groupWidget(schema: ServedSchema, hint: FieldHint = {}): GroupWidget | null {
  const { properties } = schema
  if (properties === undefined || Object.keys(properties).length === 0) return null
  return {
    is: 'group',
    fields: buildFormFields(schema, { fields: hint.fields ?? {}, hidden: [] }),
    requires: conditionalRequirements(schema),
  }
}

function optionOf(schema: ServedSchema, at: number): ValueVariant {
  const [type = ''] = typesOf(schema)
  const label =
    schema.title === undefined
      ? type === ''
        ? texts.form.option(at + 1)
        : (texts.form.types[type] ?? type)
      : fieldLabel(schema.title)
  return { field: fieldOf(label, schema, true, { label }), schema }
}

/**
 * Whether a form can show this value without losing a part of it; another value is shown as JSON.
 */
export function canWidgetShow(widget: Widget, value: unknown): boolean {
  if (value === undefined || value === null) return true
  switch (widget.is) {
    case 'flag':
      return typeof value === 'boolean' && (value || !widget.isOnlyTrue)
    case 'number':
      return typeof value === 'number'
    case 'text':
    case 'longText':
      return typeof value === 'string'
    case 'choice':
      return typeof value === 'string' && ['', ...widget.options].includes(value)
    case 'choices':
      return isTextList(value) && stringItems(value).every((one) => widget.options.includes(one))
    case 'texts':
      // The widget has one item per line; it trims the lines and omits empty ones.
      return isTextList(value) && stringItems(value).every((one) => !/[\r\n]|^\s|^$/.test(one))
    case 'rows':
      return Array.isArray(value)
    case 'group':
      return isObject(value)
    case 'oneOf':
      return widget.options.some(({ schema }) => matchesSchema(schema, value))
    default:
      return true
  }
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && stringItems(value).length === value.length
}

/** Whether the form shows a field while the draft has these values. */
export function isFieldShown({ shownIf }: FormField, draft: Draft): boolean {
  return shownIf === undefined || shownIf.is.includes(draft[shownIf.field])
}

/** The draft without the values of fields that the form does not show. */
export function pickShownFields(draft: Draft, fields: readonly FormField[]): Draft {
  const hidden = fields.filter((field) => !isFieldShown(field, draft)).map(({ name }) => name)
  return Object.fromEntries(Object.entries(draft).filter(([name]) => !hidden.includes(name)))
}

/**
 * Initial values of the form for a new record: the declared ones, and the obvious values of other
 * required fields.
 */
export function initialDraft(fields: readonly FormField[]): Draft {
  const values = fields.flatMap(({ name, isRequired, widget, initial }): [string, unknown][] => {
    if (typeof initial === 'function') return [[name, (initial as () => unknown)()]]
    if (initial !== undefined) return [[name, initial]]
    if (!isRequired) return []
    return initialOf(widget).map((value) => [name, value])
  })
  return Object.fromEntries(values)
}

/** The obvious value of a widget, in a list; the list is empty if there is none. */
function initialOf(widget: Widget): readonly unknown[] {
  switch (widget.is) {
    case 'flag':
      return widget.isOnlyTrue ? [] : [false]
    case 'json':
    case 'configData':
      return [{}]
    case 'texts':
    case 'roles':
    case 'references':
    case 'choices':
    case 'rows':
      return [[]]
    case 'choice':
      return [widget.options[0] ?? '']
    case 'group':
      return [initialDraft(widget.fields)]
    default:
      return []
  }
}

/** The value of a new item in a list; undefined: it has to be typed. */
export function newListItem(widget: Widget): unknown {
  return initialOf(widget)[0]
}

/** The values of a record that its form shows; references are ids. */
export function draftFromRecord(record: Draft, fields: readonly FormField[]): Draft {
  return Object.fromEntries(
    fields.flatMap(({ name, widget }): [string, unknown][] => {
      const value = record[name]
      if (value === undefined) return []
      if (widget.is === 'group' && isObject(value))
        return [[name, draftFromRecord(value, widget.fields)]]
      return [[name, isObject(value) && isReference(value) ? value['id'] : value]]
    }),
  )
}

function isReference(value: Draft): boolean {
  return typeof value['entity'] === 'string' && typeof value['id'] === 'string'
}

/** A changed field, with its old and new value. */
export interface FormFieldChange {
  readonly name: string
  readonly before: unknown
  readonly after: unknown
}

/** Fields whose values differ. If a field was cleared, its new value is null. */
export function changedFormFields(
  before: Draft,
  after: Draft,
  fields: readonly FormField[],
): FormFieldChange[] {
  return fields.flatMap(({ name, widget }) => {
    const [was, is] = [before[name], after[name]]
    if (isDeepEqual(was, is)) return []
    const now = widget.is === 'group' ? withCleared(widget, was, is) : is
    return [{ name, before: was, after: now === undefined ? null : now }]
  })
}

/**
 * The value of a group in which cleared members are empty: a patch keeps the members that it does
 * not name, and those that are null.
 */
function withCleared({ fields }: GroupWidget, before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after
  const members = fields.flatMap(({ name, widget }): [string, unknown][] => {
    const [was, is] = [before[name], after[name]]
    if (widget.is === 'group') return is === undefined ? [] : [[name, withCleared(widget, was, is)]]
    return is === undefined && was !== undefined && was !== null ? [[name, emptyOf(widget)]] : []
  })
  return { ...after, ...Object.fromEntries(members) }
}

function emptyOf(widget: Widget): unknown {
  switch (widget.is) {
    case 'text':
    case 'longText':
    case 'secret':
    case 'choice':
    case 'reference':
      return ''
    case 'texts':
    case 'choices':
    case 'references':
    case 'roles':
    case 'rows':
      return []
    default:
      return null
  }
}

/** The body of a patch that makes these changes. */
export function buildPatchBody(changes: readonly FormFieldChange[]): Draft {
  return Object.fromEntries(changes.map(({ name, after }) => [name, after]))
}

/** Removes secrets from a draft, because the browser stores drafts. */
export function removeDraftSecrets(draft: Draft, fields: readonly FormField[]): Draft {
  const secret = new Set(fields.filter(({ widget }) => widget.is === 'secret').map((f) => f.name))
  return Object.fromEntries(Object.entries(draft).filter(([name]) => !secret.has(name)))
}

/** An invalid field, and the reason in the console's words. */
export interface FormFault {
  readonly name: string
  /** Path of the invalid field below `name`, if `name` is a group. */
  readonly below: string
  readonly reason: string
}

/**
 * The form field that a refusal is about: `body.name`, `data.name` and `name` mean the same field.
 * For a config, the names in the schema of its type are below `data`.
 */
export function toFormFault(
  fault: RefusedField | null,
  fields: readonly FormField[],
): FormFault | null {
  if (fault === null) return null
  const isField = (part: string): boolean => fields.some(({ name }) => name === part)
  const path = fault.field.split(/[.[\]/]+/).filter((part) => part !== '')
  const parts =
    /^(body|data)$/.test(path[0] ?? '') && !isField(path[0] ?? '') ? path.slice(1) : path
  const [name = ''] = parts
  const reason = faultText(fault)
  if (isField(name)) return { name, below: parts.slice(1).join('.'), reason }
  const data = fields.find(({ widget }) => widget.is === 'configData')
  return data === undefined ? null : dataFault(data.name, parts, reason)
}

const MISSING = /^must have required property '(.+)'$/i

/** A controller reports a missing member at its parent, and the whole data as `(root)`. */
function dataFault(name: string, parts: readonly string[], reason: string): FormFault {
  const path = parts.filter((part) => part !== '(root)')
  const missing = MISSING.exec(reason)?.[1]
  if (missing === undefined) return { name, below: path.join('.'), reason }
  return { name, below: [...path, missing].join('.'), reason: texts.faults.required }
}

/** The fault of a group, relative to the group's own fields. */
export function groupFieldFault(
  fault: FormFault | null,
  fields: readonly FormField[],
): FormFault | null {
  const below = innerFault(fault)
  return below !== null && fields.some((field) => field.name === below.name) ? below : null
}

/** The fault of an item of a list; null if the fault is about another item, or the whole list. */
export function itemFault(fault: FormFault | null, at: number): FormFault | null {
  const below = innerFault(fault)
  return below?.name === String(at) ? below : null
}

function innerFault(fault: FormFault | null): FormFault | null {
  if (fault === null || fault.below === '') return null
  const [name = '', ...rest] = fault.below.split('.')
  return { name, below: rest.join('.'), reason: fault.reason }
}

import { faultText, type RefusedField } from '../../app/fault-text.ts'
import type { JsonSchema } from '../../client/api-document.ts'
import { texts } from '../../texts.ts'
import type { FieldHint, Kind } from './kinds.ts'
import type { FormField, Widget } from './form-field.ts'

/** Values of a form, as JSON that can be sent. */
export type Draft = Readonly<Record<string, unknown>>

/** Labels for OpenZiti field names that cannot be split into words. */
const labels: Readonly<Record<string, string>> = {
  ott: 'One-time token',
  ottca: 'One-time token, certificate of a CA (its id)',
  updb: 'User name and password',
  extJwt: 'External JWT',
  cert: 'Certificate',
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
  const known = words.replace(/\b(id|api|jwt|url|jwks|pem|ca|mfa|os|ott|ip|mac|totp)\b/g, (word) =>
    word.toUpperCase(),
  )
  return known.slice(0, 1).toUpperCase() + known.slice(1)
}

/**
 * The fields of a body: first those with hints, in the order of the hints, then the required
 * fields.
 */
export function fieldsOf(schema: JsonSchema, kind: Pick<Kind, 'fields' | 'hidden'>): FormField[] {
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
  schema: JsonSchema,
  isRequired: boolean,
  hint: FieldHint,
): FormField {
  return {
    name,
    label: hint.label ?? fieldLabel(name),
    help: hint.help ?? schema.description ?? null,
    isRequired,
    isNullable: typesOf(schema).includes('null'),
    widget: widgetOf(name, schema, hint),
    ...(hint.initial === undefined ? {} : { initial: hint.initial }),
  }
}

function typesOf({ type }: JsonSchema): readonly string[] {
  return typeof type === 'string' ? [type] : (type ?? [])
}

const LONG_CHARACTERS = /Pem$|^csr$/

function widgetOf(name: string, schema: JsonSchema, hint: FieldHint): Widget {
  if (hint.widget !== undefined) return hint.widget
  const options = optionsOf(schema)
  if (options !== null) return options
  const types = typesOf(schema)
  if (types.includes('boolean')) return { is: 'flag' }
  if (types.includes('integer') || types.includes('number')) return { is: 'number' }
  if (types.includes('array')) {
    const ofTexts = typesOf(schema.items ?? {}).includes('string')
    return { is: ofTexts ? 'texts' : 'json' }
  }
  if (types.includes('object')) return groupOf(schema)
  if (/password|secret/i.test(name)) return { is: 'secret' }
  return { is: LONG_CHARACTERS.test(name) ? 'longText' : 'text' }
}

function optionsOf(schema: JsonSchema): Widget | null {
  if (schema.enum === undefined) return null
  const options = schema.enum.filter((one): one is string => typeof one === 'string' && one !== '')
  return { is: 'choice', options, mayBeNone: options.length < schema.enum.length }
}

function groupOf(schema: JsonSchema): Widget {
  const { properties } = schema
  if (properties === undefined || Object.keys(properties).length === 0) return { is: 'json' }
  return { is: 'group', fields: fieldsOf(schema, { fields: {}, hidden: [] }) }
}

/**
 * Initial values in the form for a new record: those of required fields with an obvious value.
 */
export function emptyDraft(fields: readonly FormField[]): Draft {
  const values = fields.flatMap(({ name, isRequired, widget, initial }): [string, unknown][] => {
    if (initial !== undefined) return [[name, initial]]
    if (widget.is === 'group') {
      const inner = emptyDraft(widget.fields)
      return isRequired ? [[name, inner]] : []
    }
    if (!isRequired) return []
    switch (widget.is) {
      case 'flag':
        return [[name, false]]
      case 'json':
        return [[name, {}]]
      case 'texts':
      case 'roles':
      case 'references':
        return [[name, []]]
      case 'choice':
        return [[name, widget.options[0] ?? '']]
      default:
        return []
    }
  })
  return Object.fromEntries(values)
}

/** The values of a record that its form shows; references are ids. */
export function recordDraft(record: Draft, fields: readonly FormField[]): Draft {
  return Object.fromEntries(
    fields.flatMap(({ name, widget }): [string, unknown][] => {
      const value = record[name]
      if (value === undefined) return []
      if (widget.is === 'group' && isObject(value))
        return [[name, recordDraft(value, widget.fields)]]
      return [[name, isObject(value) && isReference(value) ? value['id'] : value]]
    }),
  )
}

function isReference(value: Draft): boolean {
  return typeof value['entity'] === 'string' && typeof value['id'] === 'string'
}

export function isObject(value: unknown): value is Draft {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The draft with a new value for one field; undefined removes the field. */
export function withValue(draft: Draft, name: string, value: unknown): Draft {
  const { [name]: _, ...rest } = draft
  return value === undefined ? rest : { ...rest, [name]: value }
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
  return fields.flatMap(({ name }) => {
    const [was, is] = [before[name], after[name]]
    if (isSame(was, is)) return []
    return [{ name, before: was, after: is === undefined ? null : is }]
  })
}

/** The body of a patch that makes these changes. */
export function patchBody(changes: readonly FormFieldChange[]): Draft {
  return Object.fromEntries(changes.map(({ name, after }) => [name, after]))
}

/** Deep equality of JSON; the order of members does not matter. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, at) => isSame(one, b[at]))
  }
  if (!isObject(a) || !isObject(b)) return isNothing(a) && isNothing(b)
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => isSame(a[name], b[name]))
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null
}

/** The draft in the form in which it is sent: without empty lines that are left from typing. */
export function cleanDraft(draft: Draft, fields: readonly FormField[]): Draft {
  return Object.fromEntries(
    Object.entries(draft).map(([name, value]) => {
      const widget = fields.find((field) => field.name === name)?.widget
      if (widget?.is === 'group' && isObject(value)) return [name, cleanDraft(value, widget.fields)]
      if (widget?.is !== 'texts' || !Array.isArray(value)) return [name, value]
      return [name, value.filter((one) => one !== '')]
    }),
  )
}

/** Removes secrets from a draft, because the browser stores drafts. */
export function withoutSecrets(draft: Draft, fields: readonly FormField[]): Draft {
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
export function fieldFaultIn(
  fault: RefusedField | null,
  fields: readonly FormField[],
): FormFault | null {
  if (fault === null) return null
  const parts = fault.field.split(/[.[\]/]+/).filter((part) => part !== '')
  const at = parts.findIndex((part) => fields.some(({ name }) => name === part))
  const reason = faultText(fault)
  if (at !== -1) return { name: parts[at] ?? '', below: parts.slice(at + 1).join('.'), reason }
  const data = fields.find(({ name, widget }) => name === 'data' && widget.is === 'json')
  if (data === undefined) return null
  return { name: 'data', below: '', reason: texts.faults.at(fault.field, reason) }
}

/** The fault of a group, relative to the group's own fields. */
export function faultBelow(
  fault: FormFault | null,
  fields: readonly FormField[],
): FormFault | null {
  if (fault === null || fault.below === '') return null
  const [name = '', ...rest] = fault.below.split('.')
  if (!fields.some((field) => field.name === name)) return null
  return { name, below: rest.join('.'), reason: fault.reason }
}

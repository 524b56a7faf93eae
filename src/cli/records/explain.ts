import { formatTable, printJson, printLine } from '../terminal/output.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { type KindField, schemaProperties, schemaTypes } from './fields.ts'
import { allKinds, type RecordKind, findKind, type RecordOperation } from './kinds.ts'
import { describeReference } from './names.ts'
import { schemaChoices } from './values.ts'

const verbs: Readonly<Record<RecordOperation, string>> = {
  list: 'list',
  detail: 'get',
  create: 'create',
  patch: 'update',
  delete: 'delete',
}

/** Prints every kind of record, with its operations. */
export function printKinds({ json }: { readonly json?: boolean }): void {
  const kinds = allKinds().map(({ name, plural, short, shapes }) => ({
    name,
    plural,
    short,
    verbs: Object.keys(shapes).map((shape) => verbs[shape as RecordOperation]),
  }))
  if (json === true) {
    printJson(kinds)
    return
  }
  const rows = kinds.map((kind) => [
    kind.name,
    kind.plural,
    kind.short ?? '-',
    kind.verbs.join(' '),
  ])
  printLine(formatTable(['kind', 'plural', 'short', 'verbs'], rows))
}

interface Explained {
  readonly field: string
  readonly type: string
  readonly isRequired: boolean
  readonly settable: KindField['settable']
}

/** Prints the fields of a kind, and the members of those objects that a request can set. */
export function explainKind(word: string, { json }: { readonly json?: boolean }): void {
  const kind = findKind(word)
  const fields = kind.fields.flatMap((field) => explained(kind, field))
  if (json === true) {
    printJson({ kind: kind.name, fields })
    return
  }
  const settable = { always: 'yes', create: 'when made', never: 'no' } as const
  const rows = fields.map((one) => [
    one.field,
    one.isRequired ? 'yes' : '-',
    settable[one.settable],
    one.type,
  ])
  printLine(formatTable(['field', 'required', 'can be set', 'type'], rows))
}

function explained(
  kind: RecordKind,
  { name, alias, schema, reference, isRequired, settable, isSecret }: KindField,
): Explained[] {
  const type = reference === null ? typeText(schema) : describeReference(reference)
  const own: Explained = {
    field: alias ?? name,
    type: isSecret ? `${type}; a secret: ${name}@FILE` : type,
    isRequired,
    settable,
  }
  return settable === 'never' ? [own] : [own, ...inside(kind, schema, [name], settable)]
}

const DEPTH_MAX = 4

function inside(
  kind: RecordKind,
  schema: JsonObject,
  path: readonly string[],
  settable: KindField['settable'],
): Explained[] {
  if (path.length > DEPTH_MAX) return []
  return Object.entries(schemaProperties(schema)).flatMap(([name, member]) => {
    const at = [...path, name]
    const field = at.join('.')
    const nested = kind.nested.find((one) => one.path.join('.') === field)
    const type = nested === undefined ? typeText(member) : describeReference(nested)
    return [{ field, type, isRequired: false, settable }, ...inside(kind, member, at, settable)]
  })
}

function typeText(schema: JsonObject): string {
  const choices = schemaChoices(schema)?.filter((one) => one !== '')
  if (choices !== undefined && choices.length > 0) return `one of ${choices.join(', ')}`
  const types = schemaTypes(schema)
  if (types.includes('string')) return schema['format'] === 'date-time' ? 'time' : 'text'
  if (types.includes('boolean')) return 'true or false'
  if (types.includes('integer') || types.includes('number')) return numberText(schema)
  if (types.includes('array')) return `list: ${typeText((schema['items'] ?? {}) as JsonObject)}`
  if (!types.includes('object')) return 'anything'
  const members = Object.keys(schemaProperties(schema))
  return members.length === 0 ? 'map' : `object: ${members.join(', ')}`
}

function numberText({ minimum, maximum }: JsonObject): string {
  const bounded = [minimum, maximum].filter(
    (one) => one !== undefined && one !== Number.MAX_SAFE_INTEGER,
  )
  if (bounded.length === 2) return `number, ${String(minimum)} to ${String(maximum)}`
  return minimum === undefined ? 'number' : `number, ${String(minimum)} or more`
}

import { formatYaml } from '../../config/engine/yaml-tree.ts'
import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { printableLine, firstUnprintableCharacter } from '../../lib/text/terminal-text.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'
import { baseColumns, type KindField, schemaTypes } from './fields.ts'
import { findField, type RecordKind, kindById } from './kinds.ts'
import { type RecordNameResolver } from './names.ts'
import { type ApiRecordRow } from './rows.ts'

const outputs = ['table', 'json', 'yaml', 'name'] as const
export type RecordOutputFormat = (typeof outputs)[number]

/** Maximum default columns besides name and ID; more would not fit the width of a terminal. */
const COLUMNS_MAX = 6
const CELL_CHARACTERS_MAX = 48
const TEXT_CHARACTERS_MAX = 4096

/**
 * Prints records of one kind.
 * @param shown the columns of the table, or the members in JSON and YAML; undefined: the default
 * columns of the kind, all members in JSON, and all members except `_links` in YAML.
 */
export async function printRows(
  kind: RecordKind,
  rows: readonly ApiRecordRow[],
  output: RecordOutputFormat,
  names: RecordNameResolver,
  shown?: readonly KindField[],
): Promise<void> {
  switch (output) {
    case 'json':
      printJson(shown === undefined ? rows : rows.map((row) => picked(row, shown)))
      return
    case 'yaml':
      if (rows.length === 0) return
      printLine(formatYaml(rows.map((row) => shownRow(row, shown))).trimEnd())
      return
    case 'name':
      printNames(rows.map((row) => rowName(kind, row)))
      return
    case 'table':
      printLine(await tableOf(rows, names, shown ?? columnsOf(kind)))
  }
}

/**
 * Prints names as arguments for other commands. If one begins with `-` like an option, also prints
 * how to pass it.
 */
function printNames(names: readonly string[]): void {
  for (const name of names) printLine(name)
  const optionLike = names.find((name) => name.startsWith('-'))
  if (optionLike === undefined) return
  printNote(`flotilla: pass ${optionLike} to other commands after the word --`)
}

/** Prints all members of one record as JSON or, without `_links`, as YAML; or only its name. */
export function printRow(
  kind: RecordKind,
  row: ApiRecordRow,
  output: Exclude<RecordOutputFormat, 'table'>,
): void {
  if (output === 'json') printJson(row)
  else if (output === 'name') printNames([rowName(kind, row)])
  else printLine(formatYaml(withoutLinks(row)).trimEnd())
}

/**
 * The default columns of a kind: its own list or, without one, the name, the ID, and the first
 * fields that fit into a cell.
 */
function columnsOf(kind: RecordKind): readonly KindField[] {
  if (kind.columns !== null) return kind.columns.map((name) => findColumn(kind, name))
  const named = kind.fields.filter(({ name }) => name === 'name')
  const others = kind.fields.filter((field) => !['name', 'id'].includes(field.name))
  return [
    ...named,
    ...baseColumns.filter(({ name }) => name === 'id'),
    ...others.filter(isColumn).slice(0, COLUMNS_MAX),
  ]
}

/**
 * The column that the user requested.
 * @throws {CommandFailure} exit 2 if the kind has no such column.
 */
export function findColumn(kind: RecordKind, word: string): KindField {
  return baseColumns.find(({ name }) => name === word) ?? findField(kind, word)
}

function isColumn({ field, schema, isShown, reference, settable }: KindField): boolean {
  if (!isShown) return false
  if (reference !== null) return reference.shape !== 'keys'
  const { kind = 'object', computed = null, shown = 'always' } = field ?? {}
  if (computed?.from === 'entityRef') return true
  if (computed?.from === 'constant') return false
  if (shown === 'whenSet' && settable === 'never') return false
  if (['map', 'objects'].includes(kind)) return false
  const [type] = schemaTypes(schema)
  if (type === 'array') return kind === 'attributes' || kind === 'texts'
  if (type === 'object' || type === undefined) return false
  return Number(schema['maxLength'] ?? 0) <= TEXT_CHARACTERS_MAX
}

async function tableOf(
  rows: readonly ApiRecordRow[],
  names: RecordNameResolver,
  columns: readonly KindField[],
): Promise<string> {
  const cells: string[][] = []
  for (const row of rows) {
    const values: string[] = []
    for (const column of columns) values.push(cell(await shownValue(column, row, names)))
    cells.push(values)
  }
  return formatTable(
    columns.map(({ name, alias }) => alias ?? name),
    cells,
  )
}

/**
 * Replaces the IDs in a value with names, which come from the response or from another request.
 */
async function shownValue(
  { name, alias, reference }: KindField,
  row: ApiRecordRow,
  names: RecordNameResolver,
): Promise<Json | undefined> {
  const value = row[name]
  if (value === undefined || value === null) return value
  if (reference === null) return isRef(value) ? value['name'] : (nodesOf(value) ?? value)
  const display = row[`${name}Display`]
  if (reference.shape === 'roles' && Array.isArray(display)) {
    return (display as readonly Json[]).map((role) => (isObject(role) ? (role['name'] ?? '') : ''))
  }
  const ref = [value, row[alias ?? '']].find(isRef)
  if (ref !== undefined) return ref['name']
  const ids = (Array.isArray(value) ? value : [value]).map(String).filter((id) => id !== '')
  const found = await names.namesOf(kindById(reference.to), ids)
  return ids.map((id) => found.get(id) ?? id)
}

/** Names of the routers on the path of a circuit; null for any other value. */
function nodesOf(value: Json): Json | null {
  if (!isObject(value) || !Array.isArray(value['nodes'])) return null
  return (value['nodes'] as readonly Json[]).map((node) =>
    isRef(node) ? (node['name'] ?? '') : '',
  )
}

/** True for an object with the fields with which the API describes a referenced record. */
function isRef(value: Json | undefined): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return 'name' in value && 'entity' in value
}

function cell(value: Json | undefined): string {
  const text = textOf(value)
  const line = printableLine(text)
  if (line === '') return '-'
  return line.length <= CELL_CHARACTERS_MAX ? line : `${line.slice(0, CELL_CHARACTERS_MAX - 1)}…`
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return (value as readonly Json[]).map(textOf).join(' ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function shownRow(row: ApiRecordRow, shown: readonly KindField[] | undefined): JsonObject {
  return shown === undefined ? withoutLinks(row) : picked(row, shown)
}

/** Only the given members, as the API returns them. */
function picked(row: ApiRecordRow, fields: readonly KindField[]): JsonObject {
  return Object.fromEntries(fields.map(({ name }) => [name, row[name] ?? null]))
}

function withoutLinks({ _links, ...rest }: ApiRecordRow): JsonObject {
  return rest
}

/**
 * The name of a record on one line, as an argument for another command. The ID is used if the kind
 * has no names, or if the name contains control characters or looks like an option.
 */
export function rowName(kind: RecordKind, row: ApiRecordRow): string {
  const { name } = row
  const isName = kind.hasName && typeof name === 'string' && name !== ''
  // @guard names-at-a-terminal--name
  const isSafe = isName && firstUnprintableCharacter(name) === null && !name.startsWith('-')
  return isSafe ? name : printableLine(row.id)
}

import { readTextFile } from '../terminal/text-file.ts'
import { parseYamlTree, type YamlTree } from '../../config/engine/yaml-tree.ts'
import { CommandFailure, usageFailure } from '../../controller/command-failure.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { readSecretInput, readStandardInput } from '../terminal/secret-input.ts'
import { addDefaultValues, findUnknownMember, treeToJson } from './body-members.ts'
import type { KindField } from './fields.ts'
import { findField, type RecordKind, kindNameInWords, withArticle } from './kinds.ts'
import { readMemberAt, setMemberAt } from './rows.ts'
import { memberSchema, parseFieldValue } from './values.ts'
import { errorMessage } from '../../lib/error-code.ts'

type WriteMode = 'create' | 'patch'

/** Changes to a record, from a command line. */
export interface ChangeArguments {
  readonly body: JsonObject
  /**
   * Fields of which the command line gives only some members, although a patch replaces the whole
   * field. The command must first read their current value.
   */
  readonly partial: readonly { readonly path: readonly string[]; readonly value: Json }[]
}

/**
 * The request body from `field=value` words and a file. References in it are names or ids, as the
 * user gave them.
 * @throws {CommandFailure} exit 2 with one sentence.
 */
export function bodyFromArguments(
  kind: RecordKind,
  mode: WriteMode,
  words: readonly string[],
  file: string | undefined,
): ChangeArguments {
  let body: JsonObject = file === undefined ? {} : bodyOfFile(kind, mode, file)
  const partial: { path: readonly string[]; value: Json }[] = []
  for (const word of words) {
    const { field, path, value } = assignmentOf(kind, mode, word)
    const isPartial = mode === 'patch' && path.length > 1 && field.isReplacedWhole
    if (isPartial && readMemberAt(body, path.slice(0, 1)) === undefined)
      partial.push({ path, value })
    else body = setMemberAt(body, path, value)
  }
  return { body: mode === 'create' ? addDefaultValues(kind, body) : body, partial }
}

const ASSIGNMENT = /^([A-Za-z][^=@]*)([=@])(.*)$/s

interface Assignment {
  readonly field: KindField
  readonly path: readonly string[]
  readonly value: Json
}

function assignmentOf(kind: RecordKind, mode: WriteMode, word: string): Assignment {
  const [, left = '', sign = '', right = ''] = ASSIGNMENT.exec(word) ?? []
  if (left === '') {
    throw usageFailure(
      `expected FIELD=VALUE or FIELD@FILE, found ${JSON.stringify(word.slice(0, 40))}`,
    )
  }
  const [first = '', ...rest] = left.split('.')
  const field = writableField(kind, mode, first)
  // In a map, the rest of the path is one key: users choose the keys, and a key may contain dots.
  const members = field.field?.kind === 'map' && rest.length > 0 ? [rest.join('.')] : rest
  let schema = field.schema
  const path = [field.name]
  for (const member of members) {
    const inner = memberSchema(schema, member)
    if (inner === null) {
      throw usageFailure(
        `${path.join('.')} has no member ${JSON.stringify(member)}; flotilla explain ${kind.name} lists them`,
      )
    }
    path.push(member)
    schema = inner
  }
  return { field, path, value: assignedValue(field, path.join('.'), sign, right, schema) }
}

function assignedValue(
  field: KindField,
  path: string,
  sign: string,
  right: string,
  schema: JsonObject,
): Json {
  if (field.isSecret) {
    if (sign === '@') return readSecretInput(right, path)
    throw usageFailure(
      `${path} is a secret, and command lines are visible to other users; use ${path}@FILE, or ${path}@- for standard input`,
    )
  }
  if (sign === '=') return parseFieldValue(path, right, schema)
  const text = readText(right, path)
  return schema['type'] === 'string' || [schema['type']].flat().includes('string')
    ? text
    : treeToJson(parsedTree(right, text))
}

function writableField(kind: RecordKind, mode: WriteMode, word: string): KindField {
  const field = findField(kind, word)
  const reason = whyNotWritable(kind, mode, field)
  if (reason !== null) throw usageFailure(reason)
  return field
}

/** @returns why a request cannot contain the field; null when it can. */
function whyNotWritable(
  kind: RecordKind,
  mode: WriteMode,
  { name, settable }: KindField,
): string | null {
  const one = withArticle(kindNameInWords(kind.name))
  if (kind.id === 'identity' && name === 'disabled') {
    return `${name} of ${one} is set with flotilla identity disable NAME, or flotilla identity enable NAME`
  }
  if (settable === 'never') return `${name} of ${one} is read-only`
  if (mode === 'create' || settable === 'always') return null
  return `${name} of ${one} can only be set at creation`
}

/** Reads a YAML file with fields; JSON is valid too. */
function bodyOfFile(kind: RecordKind, mode: WriteMode, path: string): JsonObject {
  const tree = parsedTree(path, readText(path, '-f'))
  if (tree.kind !== 'map') throw usageFailure(`${path}: expected fields and their values`)
  const body: Record<string, Json> = {}
  for (const { key, line, value } of tree.entries) {
    const at = `${path}: line ${line}: `
    const field = inFile(at, () => writableField(kind, mode, key))
    if (field.name in body) throw usageFailure(`${at}${field.name} is given twice`)
    body[field.name] = treeToJson(value)
    const fault = findUnknownMember(field.schema, value, field.name)
    if (fault !== null) throw usageFailure(`${path}: line ${fault.line}: ${fault.problem}`)
  }
  return body
}

function inFile<T>(at: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    throw new CommandFailure(error.exitCode, `${at}${error.message}`, error)
  }
}

function parsedTree(path: string, text: string): YamlTree {
  const parsed = parseYamlTree(text)
  if (parsed.ok) return parsed.tree
  const [fault] = parsed.faults
  const line = typeof fault?.line === 'number' ? `line ${fault.line}: ` : ''
  throw usageFailure(`${path}: ${line}${fault?.problem ?? 'is not YAML'}`)
}

function readText(path: string, what: string): string {
  if (path === '-') return readStandardInput(what)
  try {
    return readTextFile(path)
  } catch (error) {
    throw usageFailure(`${what}: ${path} cannot be read (${errorMessage(error)})`)
  }
}

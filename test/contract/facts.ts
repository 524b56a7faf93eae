import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Field } from './shape.ts'

// Facts on which OpenZiti clients rely, one operation or shape per line, so that a change of a fact
// changes one line. Tests compare the documents, the descriptors and the codes with these facts;
// record.ts generates the files. Only missing.txt is written by hand.

export const contractedApis = ['client', 'management'] as const
export type ContractedApi = (typeof contractedApis)[number]

export interface ContractParameter {
  readonly name: string
  readonly in: string
  readonly isRequired: boolean
}

/**
 * Content of a body or of `data`: the name of its shape, or of the shape of each row; null: no
 * fields are specified.
 */
export interface Content {
  readonly shape: string | null
  readonly isList: boolean
}

export interface ContractOperation {
  readonly method: string
  readonly path: string
  /** Null if the contract specifies none. */
  readonly operationId: string | null
  readonly statuses: readonly string[]
  readonly parameters: readonly ContractParameter[]
  /** Content of the request body; null: none. */
  readonly body: Content | null
  /** Content of `data` in the response; null: none. */
  readonly data: Content | null
}

export interface Contract {
  readonly basePath: string
  readonly operations: readonly ContractOperation[]
  readonly shapes: ReadonlyMap<string, readonly Field[]>
}

export interface ContractTransition {
  readonly subject: string
  readonly state: string
  readonly trigger: string
}

const NONE = '-'
const ANY = '*'

function lines(name: string): string[] {
  const text = readFileSync(join(import.meta.dirname, name), 'utf8')
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

/** Reads the file of an API: the base path, then operations in columns, then shapes. */
export function readContract(api: ContractedApi): Contract {
  const [basePath = '', ...rest] = lines(`${api}.txt`)
  const isOperation = (line: string): boolean => /^[A-Z]+ \//.test(line)
  return {
    basePath,
    operations: rest.filter(isOperation).map(operationOf),
    shapes: new Map(
      rest
        .filter((line) => !isOperation(line))
        .map((line) => {
          const [name = '', ...fields] = line.split(' ')
          return [name, fields.map(fieldOf)]
        }),
    ),
  }
}

/** Status by problem code. */
export function readCodes(): Map<string, number> {
  return new Map(
    lines('codes.txt').map((line) => {
      const [code = '', status] = line.split(' ')
      return [code, Number(status)]
    }),
  )
}

export function readTransitions(): ContractTransition[] {
  return lines('transitions.txt').map((line) => {
    const [subject = '', state = '', trigger = ''] = line.split(' | ')
    return { subject, state, trigger }
  })
}

/** Known differences between the served documents and the contract. */
export function readMissing(): string[] {
  return lines('missing.txt')
}

function operationOf(line: string): ContractOperation {
  const [method = '', path = '', id, statuses, parameters, body, data] = line
    .split(' ')
    .map((column) => (column === NONE ? undefined : column))
  return {
    method,
    path,
    operationId: id ?? null,
    statuses: statuses?.split(',') ?? [],
    parameters: (parameters?.split(',') ?? []).map((parameter) => {
      const { text, isRequired } = withoutMark(parameter)
      const [place = '', name = ''] = text.split(':')
      return { in: place, name, isRequired }
    }),
    body: contentOf(body),
    data: contentOf(data),
  }
}

function contentOf(text: string | undefined): Content | null {
  if (text === undefined) return null
  const shape = text.replace('[]', '')
  return { shape: shape === ANY ? null : shape, isList: text.endsWith('[]') }
}

/** Parses `name`, `name:string` or, for a required field, `name:string!`. */
function fieldOf(column: string): Field {
  const { text, isRequired } = withoutMark(column)
  const [name = '', types] = text.split(':')
  return { name, types: types?.split('|') ?? [], isRequired }
}

/** Removes an exclamation mark at the end, which marks a required field. */
function withoutMark(text: string): { readonly text: string; readonly isRequired: boolean } {
  const isRequired = text.endsWith('!')
  return { text: isRequired ? text.slice(0, -1) : text, isRequired }
}

export function writtenContract({ basePath, operations, shapes }: Contract): string {
  const columns = operations.map(({ method, path, operationId, statuses, ...rest }) =>
    [
      method,
      path,
      operationId ?? NONE,
      statuses.join(',') || NONE,
      rest.parameters.map(writtenParameter).join(',') || NONE,
      writtenContent(rest.body),
      writtenContent(rest.data),
    ].join(' '),
  )
  const named = [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))
  return written([
    '# base path',
    basePath,
    '',
    '# method, path, operation, statuses, parameters, body, data: - is none, * any, [] a list, ! required',
    ...columns,
    '',
    '# shape, fields with their types: ! required',
    ...named.map(([name, fields]) => [name, ...fields.map(writtenField)].join(' ')),
  ])
}

function writtenContent(content: Content | null): string {
  return content === null ? NONE : `${content.shape ?? ANY}${content.isList ? '[]' : ''}`
}

function writtenParameter({ in: place, name, isRequired }: ContractParameter): string {
  return `${place}:${name}${isRequired ? '!' : ''}`
}

function writtenField({ name, types, isRequired }: Field): string {
  const type = types.length === 0 ? '' : `:${types.join('|')}`
  return `${name}${type}${isRequired ? '!' : ''}`
}

export function written(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

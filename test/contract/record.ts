import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Content,
  type Contract,
  contractedApis,
  type ContractOperation,
  written,
  writtenContract,
} from './facts.ts'
import { type Field, fieldsOf, followed, type Resolve, rowOf, type Schema } from './shape.ts'

// Generates the facts from the documents that define OpenZiti's API:
//   node test/contract/record.ts FOLDER
// FOLDER contains `contract/<api>.json`, `reference/api-behaviour.md` and
// `mission/controller-apis.txt`.

interface Source {
  readonly basePath: string
  readonly operations: readonly {
    readonly method: string
    readonly path: string
    readonly operationId?: string
    readonly parameters: readonly {
      readonly name: string
      readonly in: string
      readonly required?: boolean
    }[]
    readonly body?: { readonly schema: Schema }
    readonly responses: Readonly<Record<string, Schema | null>>
  }[]
  readonly definitions: Readonly<Record<string, Schema>>
}

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node test/contract/record.ts FOLDER')

function read(path: string): string {
  return readFileSync(join(folder ?? '', path), 'utf8')
}

function write(name: string, text: string): void {
  writeFileSync(join(import.meta.dirname, name), text)
}

function contractOf({ basePath, operations, definitions }: Source): Contract {
  const resolve: Resolve = (reference) => definitions[reference]
  const shapes = new Map<string, readonly Field[]>()
  /** A shape has the name of its definition, or of the operation that contains it. */
  const contentOf = (schema: unknown, instead: string): Content | null => {
    if (schema === undefined) return null
    const { row, isList } = rowOf(schema, resolve)
    const fields = [...fieldsOf(row, resolve).values()].sort(byName)
    if (fields.length === 0) return { shape: null, isList }
    const shape = ((row as Schema)['$ref'] as string | undefined) ?? instead
    shapes.set(shape, fields)
    return { shape, isList }
  }
  const facts = operations.map((operation): ContractOperation => {
    const { method, path, body, responses } = operation
    const operationId = operation.operationId ?? null
    const spelled = operationId ?? `${method}${path.replaceAll('/', '-')}`
    const success = Object.keys(responses).find((status) => status.startsWith('2'))
    const { properties } = followed(responses[success ?? ''], resolve)
    const answer = (properties ?? {}) as Schema
    return {
      method,
      path,
      operationId,
      statuses: Object.keys(responses),
      parameters: operation.parameters
        .filter((parameter) => parameter.in !== 'body')
        .map(({ in: place, name, required }) => ({
          in: place,
          name,
          isRequired: required === true,
        })),
      body: contentOf(body?.schema, `${spelled}Body`),
      data: contentOf(answer['data'], `${spelled}Data`),
    }
  })
  return { basePath, operations: facts, shapes }
}

function byName(a: Field, b: Field): number {
  return a.name < b.name ? -1 : 1
}

/** Rows of the table of codes: names in backquotes, followed by a status. */
function codesIn(text: string): string[] {
  const rows = [...text.matchAll(/^\| (`[A-Z_`, /]+) \| ([0-9]{3})/gm)]
  return rows
    .flatMap(([, names = '', status = '']) =>
      [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => `${name} ${status}`),
    )
    .sort()
}

/** Rows of the table of transitions: subject, state, and trigger without its brackets. */
function transitionsIn(text: string): string[] {
  const begin = text.indexOf('## States and transitions')
  return text
    .slice(begin, text.indexOf('\n## ', begin + 1))
    .split('\n')
    .filter((line) => /^\| (?!Subject)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.replaceAll('`', '').trim()))
    .map(([, subject, state, trigger = '']) =>
      [subject, state, trigger.replace(/ \(.*\)/, '')].join(' | '),
    )
}

for (const api of contractedApis) {
  const source = JSON.parse(read(`contract/${api}.json`)) as Source
  write(`${api}.txt`, writtenContract(contractOf(source)))
}
write('codes.txt', written(['# code, status', ...codesIn(read('reference/api-behaviour.md'))]))
write(
  'transitions.txt',
  written(['# subject | state | trigger', ...transitionsIn(read('mission/controller-apis.txt'))]),
)

import type { Content, Contract, ContractOperation, ContractParameter } from './facts.ts'
import { type Field, fieldsOf, followed, type Resolve, rowOf, type Schema } from './shape.ts'

// Compares documents, not behavior: test/support/served-answers.ts compares responses with the
// document.

export interface ServedParameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
}

export interface ServedOperation {
  readonly operationId?: string
  readonly parameters?: readonly ServedParameter[]
  readonly requestBody?: { readonly content?: Contents }
  readonly responses?: Readonly<Record<string, { readonly content?: Contents }>>
}
type Contents = Readonly<Record<string, { readonly schema?: Schema }>>

export interface ServedDocument {
  readonly servers?: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, ServedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

type Subject = 'body' | 'data'

const SCHEMAS = '#/components/schemas/'

/**
 * Differences of a document from its contract, a line each: `<method> <path> <operation>: <what>`.
 */
export function faultsOf(contract: Contract, document: ServedDocument): string[] {
  const faults = (document.servers ?? []).some(({ url }) => url === contract.basePath)
    ? []
    : [`base path ${contract.basePath}`]
  const served = new Map(
    Object.entries(document.paths).map(([path, methods]) => [withoutNames(path), methods]),
  )
  const resolve: Resolve = (reference) =>
    document.components.schemas[reference.slice(SCHEMAS.length)]
  for (const operation of contract.operations) {
    const { method, path, operationId } = operation
    const own = served.get(withoutNames(path))?.[method.toLowerCase()]
    const found = own === undefined ? ['absent'] : faultsIn(operation, own, contract, resolve)
    const name = [method, path, operationId ?? '-'].join(' ')
    faults.push(...found.map((fault) => `${name}: ${fault}`))
  }
  return faults
}

/**
 * The path without the names of its parameters: clients fill in parameters by position, so the
 * names may differ.
 */
function withoutNames(path: string): string {
  return path.replace(/\{[^}]*\}/g, '{}')
}

function faultsIn(
  operation: ContractOperation,
  own: ServedOperation,
  contract: Contract,
  resolve: Resolve,
): string[] {
  const faults: string[] = []
  const { operationId, statuses, parameters, body, data } = operation
  if (operationId !== null && own.operationId !== operationId) faults.push('operation id')
  for (const status of statuses)
    if (own.responses?.[status] === undefined) faults.push(`status ${status}`)
  faults.push(...parameterFaults(parameters, own.parameters ?? []))
  if (body !== null) {
    const [sent] = Object.values(own.requestBody?.content ?? {})
    faults.push(...contentFaults('body', body, sent?.schema, contract, resolve))
  }
  const success = statuses.find((status) => status.startsWith('2')) ?? ''
  if (data !== null && own.responses?.[success] !== undefined) {
    const { schema } = own.responses[success].content?.['application/json'] ?? {}
    const { properties } = followed(schema, resolve)
    const answered = (properties as Schema | undefined)?.['data']
    faults.push(...contentFaults('data', data, answered, contract, resolve))
  }
  return faults
}

function parameterFaults(
  named: readonly ContractParameter[],
  own: readonly ServedParameter[],
): string[] {
  const taken = new Set(own.map(parameterKey))
  const sent = new Set(named.filter(({ isRequired }) => isRequired).map(parameterKey))
  const refused = own.filter((one) => one.required === true && !sent.has(parameterKey(one)))
  return [
    ...named
      .filter((one) => !taken.has(parameterKey(one)))
      .map((one) => `parameter ${one.in} ${one.name}`),
    ...refused.map((one) => `parameter ${one.in} ${one.name} is required`),
  ]
}

/**
 * Key by which parameters are compared: names of headers regardless of case, and path parameters
 * regardless of their name.
 */
function parameterKey(parameter: { readonly name: string; readonly in: string }): string {
  const { name, in: place } = parameter
  return `${place} ${place === 'header' ? name.toLowerCase() : place === 'path' ? '' : name}`
}

function contentFaults(
  subject: Subject,
  content: Content,
  schema: unknown,
  contract: Contract,
  resolve: Resolve,
): string[] {
  if (schema === undefined) return [`${subject} absent`]
  const { row, isList } = rowOf(schema, resolve)
  const faults = isList === content.isList ? [] : [`${subject} is ${isList ? 'a' : 'no'} list`]
  const own = fieldsOf(row, resolve)
  for (const field of contract.shapes.get(content.shape ?? '') ?? []) {
    const fault = fieldFault(subject, field, own.get(field.name))
    if (fault !== null) faults.push(`${subject} ${field.name}${fault}`)
  }
  return faults
}

/**
 * Responses must contain at least the fields that clients read; requests must require no more
 * fields than clients send.
 */
function fieldFault(subject: Subject, field: Field, own: Field | undefined): string | null {
  if (own === undefined) return ''
  if (field.isRequired && !own.isRequired) return ' is not required'
  if (subject === 'body' && own.isRequired && !field.isRequired) return ' is required'
  const [given, taken] = subject === 'body' ? [field, own] : [own, field]
  return isTaken(given, taken) ? null : ` is ${own.types.join(' or ')}`
}

/**
 * Whether a type is compatible with another one. An integer is also a number; a field without types
 * permits any value.
 */
function isTaken(given: Field, taken: Field): boolean {
  return (
    taken.types.length === 0 ||
    given.types.every(
      (type) =>
        taken.types.includes(type) || (type === 'integer' && taken.types.includes('number')),
    )
  )
}

// Creates the pages of the API reference from the OpenAPI documents that a controller serves.

export interface OpenApiDocument {
  readonly info: { readonly title: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly 'x-permission': string
  readonly 'x-admin-socket-only'?: boolean
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { description: string; content?: Content }>>
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: boolean | Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
}

/**
 * Parameters and status codes that the introduction of the reference describes, so that the
 * operations do not repeat them.
 */
const sharedParameters: ReadonlySet<string> = new Set([
  'consistency',
  'net-min-index',
  'net-request-id',
  'if-match',
  'if-none-match',
])
const sharedStatuses: ReadonlySet<string> = new Set(
  '200 201 202 304 400 401 404 406 412 413 415 429 503 default'.split(' '),
)

/** Fields of nested objects are shown up to this depth; deeper objects are shown as `object`. */
const FIELD_DEPTH = 3

/** The page for one API: its operations by subject, then the objects that responses contain. */
export function apiReferencePage(document: OpenApiDocument): string {
  const { info, paths, components } = document
  const base = document.servers[0]?.url ?? ''
  const bySubject = new Map<string, string[]>()
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const subject = operation.tags[0] ?? 'other'
      const shown = bySubject.get(subject) ?? []
      shown.push(operationText(method, path, operation, components.schemas))
      bySubject.set(subject, shown)
    }
  }
  const subjects = [...bySubject].sort(([a], [b]) => a.localeCompare(b, 'en'))
  return `# ${info.title}

Generated from the OpenAPI document that every controller serves at \`${base}/openapi.json\`. All paths begin with \`${base}\`. The [introduction](../api-reference.md) describes what all operations share: sessions, headers, the form
of an answer and the usual refusals.

${subjects.map(([subject, shown]) => `## ${titled(subject)}\n\n${shown.join('\n')}`).join('\n')}
## Objects

${objectsText(components.schemas)}`
}

function operationText(
  method: string,
  path: string,
  operation: OpenApiOperation,
  schemas: Readonly<Record<string, Schema>>,
): string {
  const lines = [`### \`${method.toUpperCase()} ${path}\``, '', `${operation.summary}.`, '']
  lines.push(`- Permission: ${permissionText(operation)}`)
  lines.push(`- Operation id: \`${operation.operationId}\``)
  const parameters = operation.parameters.filter(({ name }) => !sharedParameters.has(name))
  if (parameters.length > 0) lines.push(`- Parameters: ${parameters.map(parameterText).join('; ')}`)
  const answer = answerText(operation)
  if (answer !== null) lines.push(`- Answers: ${answer}`)
  const errors = Object.entries(operation.responses).filter(
    ([status]) => !sharedStatuses.has(status),
  )
  if (errors.length > 0) {
    const shown = errors.map(
      ([status, { description }]) => `${status} (${lowerFirst(description)})`,
    )
    lines.push(`- Further refusals: ${shown.join(', ')}`)
  }
  const body = bodyText(operation, schemas)
  return `${[...lines, '', ...(body === '' ? [] : [body])].join('\n')}\n`
}

function permissionText(operation: OpenApiOperation): string {
  if (operation['x-admin-socket-only'] === true) return 'the admin socket of a controller alone'
  if (operation['x-permission'] === 'public') return 'none, no session needed'
  return `\`${operation['x-permission']}\``
}

function parameterText({ name, in: place, required, description, schema }: Parameter): string {
  const needed = required ? 'required' : 'optional'
  const about = description === undefined ? '' : `: ${description}`
  return `\`${name}\` (${place}, ${typeText(schema)}, ${needed})${about}`
}

function answerText({ responses }: OpenApiOperation): string | null {
  const [status, response] = Object.entries(responses).find(([one]) => one.startsWith('2')) ?? []
  const [type, content] = Object.entries(response?.content ?? {})[0] ?? []
  if (status === undefined || content === undefined) return null
  const data = content.schema.properties?.['data'] ?? content.schema
  const of = data.items === undefined ? typeText(data) : `a list of ${typeText(data.items)}`
  return `${status}, ${of}${type === 'application/json' ? '' : ` as \`${type}\``}`
}

function bodyText(
  { requestBody }: OpenApiOperation,
  schemas: Readonly<Record<string, Schema>>,
): string {
  if (requestBody === undefined) return ''
  const schema = requestBody.content['application/json']?.schema
  const types = Object.keys(requestBody.content).map((type) => `\`${type}\``)
  const opening = `Body (${types.join(', ')}${requestBody.required ? '' : ', optional'}):`
  if (schema === undefined) return `${opening} text.\n`
  return `${opening}\n\n${fieldTable(resolved(schema, schemas))}`
}

function resolved(schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (schemas[name] ?? schema)
}

function objectsText(schemas: Readonly<Record<string, Schema>>): string {
  const shown = Object.entries(schemas).filter(([name]) => !/(Create|Update|Patch)$/.test(name))
  return shown
    .sort(([a], [b]) => a.localeCompare(b, 'en'))
    .map(([name, schema]) => `### ${name}\n\n${fieldTable(schema)}`)
    .join('\n')
}

/** Table with the fields of an object; a nested field is named by its path. */
function fieldTable(schema: Schema): string {
  const rows = fieldRows(schema, '', FIELD_DEPTH)
  if (rows.length === 0) return `${capitalized(typeText(schema))}.\n`
  return `| field | type | required |\n|---|---|---|\n${rows.join('\n')}\n`
}

function fieldRows(schema: Schema, prefix: string, depth: number): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const isRequired = schema.required?.includes(name) === true
    const row = `| \`${prefix}${name}\` | ${typeText(field)} | ${isRequired ? 'yes' : ''} |`
    if (depth <= 1) return [row]
    const inner = field.items ?? field
    const next = `${prefix}${name}${field.items === undefined ? '' : '[]'}.`
    return [row, ...fieldRows(inner, next, depth - 1)]
  })
}

/** Describes a type with its limits, such as `text of at most 512 characters, or null`. */
function typeText(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return /(Create|Update|Patch)$/.test(name) ? `\`${name}\`` : `[${name}](#${name.toLowerCase()})`
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  const values = schema.enum?.filter((value) => value !== null && value !== '')
  const types = [schema.type ?? []].flat()
  const nullable = types.includes('null') || schema.enum?.includes(null) === true ? ', or null' : ''
  if (values !== undefined && values.length > 0) {
    return `${values.map((value) => `\`${String(value)}\``).join(', ')}${nullable}`
  }
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return [...new Set(alternatives.map(typeText))].join(' or ')
  const [type = 'any'] = types.filter((one) => one !== 'null')
  return `${plainType(type, schema)}${nullable}`
}

function plainType(type: string, schema: Schema): string {
  const { format, minimum, maximum, maxLength, maxItems, items, additionalProperties } = schema
  if (type === 'array') {
    const most = maxItems === undefined ? '' : `, at most ${count(maxItems)}`
    return `list of ${items === undefined ? 'any' : typeText(items)}${most}`
  }
  if (type === 'string') {
    const most = maxLength === undefined ? '' : ` of at most ${count(maxLength)} characters`
    return `text${format === undefined ? '' : ` (${format})`}${most}`
  }
  if (type === 'integer' || type === 'number') {
    if (minimum !== undefined && maximum !== undefined) {
      return `${type} from ${count(minimum)} to ${count(maximum)}`
    }
    return minimum === undefined ? type : `${type} from ${count(minimum)}`
  }
  if (type === 'object' && typeof additionalProperties === 'object') {
    const of = typeText(additionalProperties)
    return `object of ${of}`
  }
  return type
}

const count = (value: number): string => value.toLocaleString('en-US')

function titled(subject: string): string {
  const words = subject.replaceAll(/([a-z])([A-Z])/g, (_, a: string, b: string) => {
    return `${a} ${b.toLowerCase()}`
  })
  return capitalized(words)
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

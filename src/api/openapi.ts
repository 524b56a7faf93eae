import type { NamedSchema } from '../entities/operations.ts'
import type { ApiName, JsonSchema, Operation, ResponseShape } from './operation.ts'
import type { ApiParts, BindingName } from './parts.ts'
import { basePaths } from './paths.ts'
import { errorEnvelope, meta } from './schemas.ts'

type Json = Record<string, unknown>

const bindings: Readonly<Record<ApiName, BindingName>> = {
  client: 'edge-client',
  management: 'edge-management',
  fabric: 'fabric',
  host: 'health-checks',
}
const titles: Readonly<Record<ApiName, string>> = {
  client: 'Flotilla client API',
  management: 'Flotilla management API',
  fabric: 'Flotilla cluster and fabric API',
  host: 'Flotilla host',
}

/** OpenAPI 3.1 of one API, from the operations that its routes are made of and the schemas that its bodies are held to. */
export function openapiDocument(
  api: ApiName,
  operations: readonly Operation[],
  parts: Pick<ApiParts, 'bindings' | 'version'>,
): Json {
  const schemas: Json = {}
  const refer = (named: NamedSchema): Json => {
    schemas[named.name] = named.schema
    return { $ref: `#/components/schemas/${named.name}` }
  }
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    if (!operation.apis.includes(api)) continue
    const item = (paths[operation.path] ??= {})
    item[operation.method.toLowerCase()] = describe(operation, refer)
  }
  const urls = parts.bindings[bindings[api]] ?? []
  return {
    openapi: '3.1.0',
    info: { title: titles[api], version: parts.version.version },
    servers: ['', ...urls].map((url) => ({ url: url + basePaths[api] })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' },
        netSession: { type: 'apiKey', in: 'header', name: 'net-session' },
      },
    },
  }
}

type Refer = (named: NamedSchema) => Json

function describe(operation: Operation, refer: Refer): Json {
  const { operationId, summary, tag, body, permission, response, success } = operation
  const content = contentOf(response, refer)
  const responses: Json = { [success]: { description: 'Done', content } }
  if (operation.alsoAnswers !== undefined) {
    responses[operation.alsoAnswers] = { description: 'Done, and the news is bad', content }
  }
  for (const status of refusalsOf(operation)) {
    responses[status] = {
      description: reasons[status] ?? 'Refused',
      content: { 'application/json': { schema: refer(errorEnvelope) } },
    }
  }
  return {
    operationId,
    summary,
    tags: [tag],
    security: permission === 'public' ? [] : [{ netSession: [] }, { ztSession: [] }],
    parameters: parametersOf(operation),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isRequired,
            content: { 'application/json': { schema: refer(body.schema) } },
          },
        }),
    responses,
  }
}

/** What every operation may be refused with on its way, and what this one says of itself. */
function refusalsOf({ refusals, permission, body, method, isAlwaysServed }: Operation): number[] {
  const statuses = new Set([...refusals, 400, 406])
  if (isAlwaysServed !== true) statuses.add(503)
  if (permission !== 'public') statuses.add(401)
  if (method !== 'GET') statuses.add(429)
  if (body !== undefined) for (const status of [413, 415]) statuses.add(status)
  return [...statuses].sort((a, b) => a - b)
}

function parametersOf({ path, query = [], headers = [], method, permission }: Operation): Json[] {
  const inPath = [...path.matchAll(/\{([A-Za-z]+)\}/g)].map((match) => ({
    name: match[1],
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = query.map(({ name, schema, isRequired }) => ({
    name,
    in: 'query',
    required: isRequired,
    schema,
    ...(schema['type'] === 'array' ? { style: 'form', explode: true } : {}),
  }))
  const header = (name: string, description: string): Json => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  })
  const read = headers.map(({ name, description }) => header(name, description))
  if (permission === 'public') return [...inPath, ...inQuery, ...read]
  const minIndex = header('net-min-index', '<generation>:<index> that the answer must reflect')
  const requestId = header('net-request-id', 'UUIDv7: the same one takes effect once')
  return [...inPath, ...inQuery, ...read, minIndex, ...(method === 'GET' ? [] : [requestId])]
}

function contentOf(response: ResponseShape, refer: Refer): Json {
  const types = response.types ?? ['application/json']
  const schema = successSchema(response, refer)
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

/** The schema of the whole body of a success. */
export function successSchema({ kind, schema }: ResponseShape, refer: Refer): JsonSchema {
  if (kind === 'bare') return refer(schema)
  const data = kind === 'list' ? { type: 'array', items: refer(schema) } : refer(schema)
  return {
    type: 'object',
    properties: { data, meta: refer(meta) },
    required: ['data', 'meta'],
    additionalProperties: false,
  }
}

const reasons: Readonly<Record<number, string>> = {
  400: 'The request is malformed or names a field at fault',
  401: 'No valid session, or one that may not do this',
  403: 'Not permitted',
  404: 'Not found, confirmed by the cluster',
  406: 'No type that the caller accepts',
  409: 'In conflict with what is there',
  413: 'The body is too large',
  415: 'The body is not JSON',
  429: 'Too many requests; see Retry-After',
  500: 'A fault of this controller',
  503: 'No leader, an outcome not known, or an index not reached',
}

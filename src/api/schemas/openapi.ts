import type { NamedSchema } from '../../entities/operations.ts'
import { type ApiName, permissionOnApi } from '../../auth/principal/permissions.ts'
import { isAdminSocketOnly } from '../../auth/principal/host-user.ts'
import type { JsonSchema, Operation, ResponseShape } from '../http/operation.ts'
import type { ApiVersionsKey, VersionInfo } from '../api-deps.ts'
import { basePaths } from '../http/paths.ts'
import { errorEnvelopeSchema, responseMetaSchema } from './envelope.ts'

interface OpenapiDocumentDeps {
  readonly version: VersionInfo
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

type Json = Record<string, unknown>

const bindings: Readonly<Record<ApiName, ApiVersionsKey>> = {
  client: 'edge-client',
  management: 'edge-management',
  fabric: 'fabric',
  host: 'health-checks',
  oidc: 'edge-oidc',
}
const titles: Readonly<Record<ApiName, string>> = {
  client: 'Flotilla client API',
  management: 'Flotilla management API',
  fabric: 'Flotilla cluster and fabric API',
  host: 'Flotilla host',
  oidc: 'Flotilla OpenID provider',
}

/** The OpenAPI 3.1 document of one API, generated from its operations and schemas. */
export function openapiDocument(
  api: ApiName,
  operations: readonly Operation[],
  deps: OpenapiDocumentDeps,
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
    item[operation.method.toLowerCase()] = describe(operation, api, refer)
  }
  const urls = deps.bindings[bindings[api]] ?? []
  return {
    openapi: '3.1.0',
    info: { title: titles[api], version: deps.version.version },
    servers: ['', ...urls].map((url) => ({ url: url + basePaths[api] })),
    paths,
    components: {
      schemas,
      headers: components,
      securitySchemes: {
        ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' },
        netSession: { type: 'apiKey', in: 'header', name: 'net-session' },
      },
    },
  }
}

type Refer = (named: NamedSchema) => Json

function describe(operation: Operation, api: ApiName, refer: Refer): Json {
  const { operationId, summary, tag, body, permission, response, success } = operation
  const content = contentOf(response, refer)
  const headers = headersOf(operation)
  const responses: Json = {
    [success]: { description: success === 202 ? 'Begun' : 'Done', headers, content },
  }
  if (operation.alsoAnswers !== undefined) {
    responses[operation.alsoAnswers] = {
      description: 'Done; at least one check failed',
      headers,
      content,
    }
  }
  if (operation.hasEtag === true && operation.method === 'GET') {
    responses[304] = { description: 'Not modified (If-None-Match)', headers }
  }
  const envelope = { 'application/json': { schema: refer(errorEnvelopeSchema) } }
  for (const status of refusalsOf(operation)) {
    responses[status] = {
      description: reasons[status] ?? 'Refused',
      headers: { ...headersOf({ ...operation, hasEtag: false }), ...refusalHeaders(status) },
      content: envelope,
    }
  }
  responses['default'] = { description: 'Internal error', content: envelope }
  return {
    operationId,
    summary,
    tags: [tag],
    security: securityOf(operation),
    'x-permission': permissionOnApi(api, permission),
    ...(isAdminSocketOnly(operation) ? { 'x-admin-socket-only': true } : {}),
    parameters: parametersOf(operation),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isRequired,
            content: {
              [body.type ?? 'application/json']: { schema: refer(body.schema) },
              ...Object.fromEntries(
                (body.textTypes ?? []).map((type) => [type, { schema: { type: 'string' } }]),
              ),
            },
          },
        }),
    responses,
  }
}

/**
 * Alternative security schemes of an operation. An empty scheme, or an empty list, means that no
 * authentication is needed.
 */
function securityOf({ permission, elevatedPermission: moreFor }: Operation): Json[] {
  const session = [{ netSession: [] }, { ztSession: [] }]
  if (permission !== 'public') return session
  return moreFor === undefined ? [] : [{}, ...session]
}

/**
 * Error statuses of an operation: the statuses that follow from its traits, and the statuses that
 * it declares.
 */
function refusalsOf(operation: Operation): number[] {
  const {
    refusals = [],
    permission,
    body,
    method,
    isAlwaysServed,
    hasEtag: isTagged,
    response,
  } = operation
  const statuses = new Set([...refusals, 400])
  if (response.ignoresAccept !== true) statuses.add(406)
  if (isAlwaysServed !== true) statuses.add(503)
  if (permission !== 'public') statuses.add(401)
  if (method !== 'GET' || permission !== 'public') statuses.add(429)
  if (isTagged === true && method !== 'GET') statuses.add(412)
  if (body !== undefined) for (const status of [413, 415]) statuses.add(status)
  return [...statuses].sort((a, b) => a - b)
}

function parametersOf(operation: Operation): Json[] {
  const { path, query = [], headers = [], method, permission, hasEtag: isTagged } = operation
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
  const minIndex = header('net-min-index', '<generation>:<index> that the response must reflect')
  const requestId = header('net-request-id', 'UUIDv7 for idempotent retries')
  const tag =
    method === 'GET'
      ? header('if-none-match', 'ETags; 304 if one matches')
      : header('if-match', 'ETags, or *; 412 if none matches')
  return [
    ...inPath,
    ...inQuery,
    ...read,
    consistency,
    minIndex,
    ...(method === 'GET' ? [] : [requestId]),
    ...(isTagged === true ? [tag] : []),
  ]
}

function contentOf(response: ResponseShape, refer: Refer): Json {
  const types = response.types ?? ['application/json']
  const schema = successSchema(response, refer)
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

/** The schema of the whole body of a successful response. */
function successSchema({ kind, schema }: ResponseShape, refer: Refer): JsonSchema {
  if (kind === 'bare') return refer(schema)
  const data = kind === 'list' ? { type: 'array', items: refer(schema) } : refer(schema)
  return {
    type: 'object',
    properties: { data, meta: refer(responseMetaSchema) },
    required: ['data', 'meta'],
    additionalProperties: false,
  }
}

const consistency = {
  name: 'consistency',
  in: 'query',
  required: false,
  description: 'linearizable: reflects every write acknowledged before',
  schema: { type: 'string', enum: ['local', 'linearizable'] },
} as const

function headerOf(description: string, schema: JsonSchema = { type: 'string' }): Json {
  return { description, schema }
}

/** The response headers that the documents describe, by name. */
const components: Readonly<Record<string, Json>> = {
  'net-index': headerOf('<generation>:<index> that the response reflects; for net-min-index'),
  'net-stale-ms': headerOf('Time since this controller last had contact with a leader', {
    type: 'integer',
    minimum: 0,
  }),
  'ziti-instance-id': headerOf('Changes with each start of the process'),
  server: headerOf('Program version and OpenZiti API level'),
  'expiration-seconds': headerOf(
    'Idle timeout of the session; with an OIDC access token: seconds until the token expires',
    { type: 'integer' },
  ),
  'expires-at': headerOf(
    'Expiry of the session if it is not used again; with an OIDC access token: expiry of the token',
  ),
  etag: headerOf('For If-Match and If-None-Match'),
  'retry-after': headerOf('Seconds', { type: 'integer', minimum: 0 }),
  'www-authenticate': headerOf('Why a session is needed; absent if another session would not help'),
}

function refersTo(names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function headersOf({ permission, hasEtag: isTagged, method }: Operation): Json {
  return refersTo([
    'net-index',
    'net-stale-ms',
    'ziti-instance-id',
    'server',
    ...(permission === 'public' ? [] : ['expiration-seconds', 'expires-at']),
    ...(isTagged === true && method === 'GET' ? ['etag'] : []),
  ])
}

function refusalHeaders(status: number): Json {
  if (status === 401) return refersTo(['www-authenticate'])
  return status === 429 || status === 503 ? refersTo(['retry-after']) : {}
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Malformed request or invalid field',
  401: 'No valid session, or no permission',
  403: 'Not permitted',
  404: 'Not found, confirmed by the cluster',
  406: 'No acceptable media type',
  409: 'Conflict with the current state',
  412: 'If-Match precondition failed',
  413: 'The body is too large',
  415: 'Unsupported media type of the body',
  429: 'Too many requests; see Retry-After',
  500: 'Internal error',
  503: 'No leader, outcome unknown, or index not reached',
  507: 'Not enough disk space on this controller',
}

import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { bodyFormats } from '../../src/api/schemas/request-body-validator.ts'
import { type ContractedApi, readContract, readMissing } from '../contract/facts.ts'
import { faultsOf, type ServedDocument, type ServedOperation } from '../contract/judge.ts'
import { bases } from '../support/served-answers.ts'
import { client, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

type Json = Readonly<Record<string, unknown>>

const { controller } = await controllerForFile()

const texts = new Map<string, string>()

/** The text of a document, requested only once. */
async function textAt(base: string): Promise<string> {
  const known = texts.get(base)
  if (known !== undefined) return known
  const { payload } = await controller.app.inject(`${base}/openapi.json`)
  texts.set(base, payload)
  return payload
}

async function documentAt(base: string): Promise<Json> {
  return JSON.parse(await textAt(base)) as Json
}

const text = { type: 'string', minLength: 1 } as const
const reference = {
  type: 'object',
  properties: { $ref: { type: 'string', pattern: '^#/' } },
  required: ['$ref'],
} as const

/**
 * The objects of OpenAPI 3.1.0 section 4.8 that the documents use. Other members are forbidden,
 * except those that begin with `x-`.
 */
const metaSchema = {
  $id: 'openapi',
  type: 'object',
  properties: {
    openapi: { const: '3.1.0' },
    info: {
      type: 'object',
      properties: { title: text, version: text, summary: text, description: text },
      required: ['title', 'version'],
      additionalProperties: false,
    },
    servers: {
      type: 'array',
      items: { type: 'object', properties: { url: text }, required: ['url'] },
    },
    paths: {
      type: 'object',
      propertyNames: { pattern: '^/' },
      additionalProperties: {
        type: 'object',
        propertyNames: { enum: ['get', 'post', 'put', 'patch', 'delete'] },
        additionalProperties: { $ref: '#/$defs/operation' },
      },
    },
    components: {
      type: 'object',
      properties: {
        schemas: { type: 'object', additionalProperties: { type: 'object' } },
        headers: { type: 'object', additionalProperties: { $ref: '#/$defs/header' } },
        securitySchemes: {
          type: 'object',
          additionalProperties: {
            type: 'object',
            properties: { type: { const: 'apiKey' }, in: { const: 'header' }, name: text },
            required: ['type', 'in', 'name'],
            additionalProperties: false,
          },
        },
      },
      propertyNames: { pattern: '^(schemas|headers|securitySchemes)$' },
    },
  },
  required: ['openapi', 'info', 'paths', 'components'],
  propertyNames: { enum: ['openapi', 'info', 'servers', 'paths', 'components'] },
  $defs: {
    operation: {
      type: 'object',
      properties: {
        operationId: text,
        summary: text,
        tags: { type: 'array', items: text, minItems: 1 },
        security: {
          type: 'array',
          items: { type: 'object', additionalProperties: { type: 'array', maxItems: 0 } },
        },
        parameters: { type: 'array', items: { $ref: '#/$defs/parameter' } },
        requestBody: {
          type: 'object',
          properties: {
            required: { type: 'boolean' },
            content: { $ref: '#/$defs/content' },
          },
          required: ['content'],
          additionalProperties: false,
        },
        responses: {
          type: 'object',
          minProperties: 2,
          propertyNames: { pattern: '^([1-5][0-9]{2}|default)$' },
          additionalProperties: {
            type: 'object',
            properties: {
              description: text,
              headers: {
                type: 'object',
                additionalProperties: { anyOf: [reference, { $ref: '#/$defs/header' }] },
              },
              content: { $ref: '#/$defs/content' },
            },
            required: ['description'],
            additionalProperties: false,
          },
        },
      },
      required: ['operationId', 'summary', 'tags', 'security', 'parameters', 'responses'],
      patternProperties: { '^x-': true },
      additionalProperties: false,
    },
    parameter: {
      type: 'object',
      properties: {
        name: text,
        in: { enum: ['path', 'query', 'header'] },
        required: { type: 'boolean' },
        description: text,
        schema: { type: 'object' },
        style: { enum: ['form', 'simple'] },
        explode: { type: 'boolean' },
      },
      required: ['name', 'in', 'schema'],
      if: { properties: { in: { const: 'path' } } },
      then: { properties: { required: { const: true } }, required: ['required'] },
      additionalProperties: false,
    },
    header: {
      type: 'object',
      properties: { description: text, schema: { type: 'object' } },
      required: ['schema'],
      additionalProperties: false,
    },
    content: {
      type: 'object',
      minProperties: 1,
      propertyNames: { pattern: '^[a-z]+/[a-z0-9.+-]+$' },
      additionalProperties: {
        type: 'object',
        properties: { schema: { type: 'object' } },
        required: ['schema'],
        additionalProperties: false,
      },
    },
  },
} as const

interface Parameter {
  readonly name: string
  readonly in: string
}
interface Operation {
  readonly operationId: string
  readonly security: readonly Json[]
  readonly parameters: readonly Parameter[]
  readonly responses: Readonly<Record<string, { readonly headers?: Json; readonly content?: Json }>>
}

function operationsOf(document: Json): [string, string, Operation][] {
  const paths = document['paths'] as Readonly<Record<string, Readonly<Record<string, Operation>>>>
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, string, Operation] => [
      path,
      method,
      operation,
    ]),
  )
}

/** Every `$ref` and every `schema` of the document. */
function* walk(value: unknown): Generator<{ readonly key: string; readonly value: unknown }> {
  if (value === null || typeof value !== 'object') return
  for (const [key, member] of Object.entries(value)) {
    yield { key, value: member }
    yield* walk(member)
  }
}

function resolve(document: Json, ref: string): unknown {
  return ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (at as Json | undefined)?.[step.replaceAll('~1', '/')], document)
}

describe.each([
  ['client', client],
  ['management', management],
  ['fabric', fabric],
])('the OpenAPI document of the %s API', (_name, base) => {
  test('conforms to OpenAPI 3.1', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    const check = ajv.compile(metaSchema)
    const isValid = check(await documentAt(base))
    expect(isValid ? [] : check.errors).toEqual([])
  })

  test('contains valid JSON Schema 2020-12 schemas, and no reference without a target', async () => {
    const document = await documentAt(base)
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats.default(ajv)
    for (const { key, value } of walk(document)) {
      if (key === '$ref' && typeof value === 'string') {
        expect(resolve(document, value), value).toBeDefined()
      }
    }
    const { schemas } = document['components'] as { readonly schemas: Json }
    for (const [name, schema] of Object.entries(schemas)) {
      expect(ajv.validateSchema(schema as Json), `${name}: ${ajv.errorsText()}`).toBe(true)
    }
    for (const { key, value } of walk(document['paths'])) {
      if (key === 'schema') expect(ajv.validateSchema(value as Json), ajv.errorsText()).toBe(true)
    }
  })

  test('uses only string formats that the controller validates', async () => {
    const formats = [...walk(await documentAt(base))].flatMap(({ key, value }) =>
      key === 'format' && typeof value === 'string' ? [value] : [],
    )
    expect(Object.keys(bodyFormats)).toEqual(expect.arrayContaining([...new Set(formats)]))
  })

  test('lists each operation once, with its path parameters', async () => {
    const operations = operationsOf(await documentAt(base))
    const ids = operations.map(([, , { operationId }]) => operationId)
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([])
    for (const [path, , { parameters, operationId }] of operations) {
      const named = parameters.map(({ name, in: place }) => `${place} ${name}`)
      expect(
        named.filter((name, i) => named.indexOf(name) !== i),
        operationId,
      ).toEqual([])
      const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name)
      const wanted = [...path.matchAll(/\{([A-Za-z]+)\}/g)].map((match) => match[1])
      expect(inPath, operationId).toEqual(wanted)
    }
  })

  test('declares the error envelope and its headers for each refusal, and 400, 401 and 429 for each operation to which they apply', async () => {
    for (const [, method, { responses, security, operationId }] of operationsOf(
      await documentAt(base),
    )) {
      for (const [status, { headers = {}, content = {} }] of Object.entries(responses)) {
        if (status === 'default' || Number(status) < 400) continue
        // A health response with failed checks has an error status, but is not a refusal.
        if (operationId === 'healthCheck') continue
        const { schema } = content['application/json'] as { readonly schema: Json }
        expect(schema['$ref'], `${operationId} ${status}`).toBe(
          '#/components/schemas/apiErrorEnvelope',
        )
        expect(Object.keys(headers), operationId).toContain('net-index')
        if (status === '401') expect(Object.keys(headers)).toContain('www-authenticate')
        if (status === '429' || status === '503') {
          expect(Object.keys(headers), operationId).toContain('retry-after')
        }
      }
      expect(responses, operationId).toHaveProperty('400')
      if (security.length > 0 && !security.some((one) => Object.keys(one).length === 0)) {
        expect(responses, operationId).toHaveProperty('401')
      }
      if (method !== 'get') expect(responses, operationId).toHaveProperty('429')
    }
  })
})

test('the list of service edge router policies of an edge router declares optional fields that no row has, as OpenZiti’s API specification does', async () => {
  const document = await documentAt(management)
  const { schemas } = document['components'] as {
    readonly schemas: Readonly<Record<string, { properties: Json; required: readonly string[] }>>
  }
  const rows = schemas['edgeRouterServiceEdgeRouterPolicyDetail']
  const detail = schemas['serviceEdgeRouterPolicyDetail']
  const added = Object.keys(rows?.properties ?? {}).filter((name) => !detail?.properties[name])
  expect(added.sort()).toEqual([
    'identityRoles',
    'identityRolesDisplay',
    'postureCheckRoles',
    'postureCheckRolesDisplay',
    'type',
  ])
  for (const name of added) {
    expect(rows?.properties[name]).toMatchObject({
      description: expect.stringMatching(/never sent/),
    })
  }
  expect(rows?.required).toEqual(detail?.required)
  const users = operationsOf(document).filter(([, , { responses }]) =>
    JSON.stringify(responses).includes('edgeRouterServiceEdgeRouterPolicyDetail'),
  )
  expect(users.map(([path]) => path)).toEqual(['/edge-routers/{id}/service-edge-router-policies'])
})

// The documents contain every operation that OpenZiti clients call, and each of them is served.
describe('the served OpenAPI documents and OpenZiti’s contract', () => {
  const known = readMissing()
  const contracts = { client: readContract('client'), management: readContract('management') }

  /** Faults of a document after a change. */
  async function faultsAfter(
    api: ContractedApi,
    change: (document: Changeable) => void,
  ): Promise<string[]> {
    const document = JSON.parse(await textAt(bases[api])) as Changeable
    change(document)
    return faultsOf(contracts[api], document as ServedDocument).map((fault) => `${api} ${fault}`)
  }

  test('differ exactly as the list of differences says', async () => {
    const found = [
      ...(await faultsAfter('client', () => {})),
      ...(await faultsAfter('management', () => {})),
    ]
    const lost = found.filter((line) => !known.includes(line))
    const offered = known.filter((line) => !found.includes(line))
    expect(lost, 'an operation that was offered before is missing').toEqual([])
    expect(
      offered,
      'remove operations that are offered now from test/contract/missing.txt',
    ).toEqual([])
  })

  test.each<[string, (document: Changeable) => void, readonly string[]]>([
    [
      'the base path',
      (document) => {
        document.servers = []
      },
      ['base path /edge/client/v1'],
    ],
    [
      'an operation',
      ({ paths }) => {
        delete paths['/services']?.['get']
      },
      ['GET /services listServices: absent'],
    ],
    [
      'an operation id',
      ({ paths }) => {
        changed(paths['/services']?.['get']).operationId = 'getServices'
      },
      ['GET /services listServices: operation id'],
    ],
    [
      'a response status',
      ({ paths }) => {
        delete changed(paths['/services']?.['get']).responses['503']
      },
      ['GET /services listServices: status 503'],
    ],
    [
      'a query parameter',
      ({ paths }) => {
        const operation = changed(paths['/services']?.['get'])
        operation.parameters = operation.parameters.filter(({ name }) => name !== 'filter')
      },
      ['GET /services listServices: parameter query filter'],
    ],
    [
      'a path parameter',
      ({ paths }) => {
        changed(paths['/services/{id}']?.['get']).parameters = []
      },
      ['GET /services/{id} detailService: parameter path id'],
    ],
    [
      'the right to omit a parameter',
      ({ paths }) => {
        changed(paths['/services']?.['get']).parameters.push({
          name: 'realm',
          in: 'query',
          required: true,
        })
      },
      ['GET /services listServices: parameter query realm is required'],
    ],
    [
      'a request body',
      ({ paths }) => {
        delete paths['/services/{id}']?.['patch']?.requestBody
      },
      ['PATCH /services/{id} patchService: body absent'],
    ],
    [
      'a field in a request body',
      ({ components }) => {
        delete components.schemas['serviceUpdate']?.properties['tags']
      },
      ['PUT /services/{id} updateService: body tags'],
    ],
    [
      'the requirement for a field in a request body',
      ({ components }) => {
        changed(components.schemas['serviceUpdate']).required = []
      },
      ['PUT /services/{id} updateService: body name is not required'],
    ],
    [
      'the right to omit a field in a request body',
      ({ components }) => {
        changed(components.schemas['serviceUpdate']).required.push('tags')
      },
      ['PUT /services/{id} updateService: body tags is required'],
    ],
    [
      'the type of a field in a request body',
      ({ components }) => {
        changed(components.schemas['serviceUpdate']).properties['tags'] = { type: 'string' }
      },
      ['PUT /services/{id} updateService: body tags is string'],
    ],
    [
      'a field in a response',
      ({ components }) => {
        delete components.schemas['serviceDetail']?.properties['permissions']
      },
      [
        'GET /services listServices: data permissions',
        'GET /services/{id} detailService: data permissions',
      ],
    ],
    [
      'the guarantee that a response has a field',
      ({ components }) => {
        changed(components.schemas['networkJWT']).required = ['name']
      },
      ['GET /network-jwts listNetworkJWTs: data token is not required'],
    ],
    [
      'the list type of a response',
      ({ paths, components }) => {
        changed(paths['/services']?.['get']).responses['200'] = {
          content: {
            'application/json': {
              schema: { properties: { data: components.schemas['serviceDetail'] } },
            },
          },
        }
      },
      ['GET /services listServices: data is no list'],
    ],
  ])('differ if a document lacks %s', async (_what, lose, faults) => {
    const found = await faultsAfter('client', lose)
    const more = found.filter((line) => !known.includes(line))
    expect(more).toEqual(faults.map((fault) => `client ${fault}`))
  })
})

/** A document from which a test removes a part. */
interface Changeable {
  servers: { url: string }[]
  readonly paths: Record<string, Record<string, ChangeableOperation>>
  readonly components: {
    readonly schemas: Record<string, { properties: Record<string, unknown>; required: string[] }>
  }
}

interface ChangeableOperation {
  operationId: string
  parameters: { name: string; in: string; required?: boolean }[]
  requestBody?: NonNullable<ServedOperation['requestBody']>
  responses: Record<string, unknown>
}

/** Fails if the part that a test wants to change does not exist. */
function changed<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('the document has no such part')
  return part
}

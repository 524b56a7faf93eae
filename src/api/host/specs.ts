import { gzipSync } from 'node:zlib'

import { acceptedCodings } from '../http/responses/accepted-codings.ts'
import {
  responseWithoutEnvelope,
  detailResponse,
  listResponse,
  type Reply,
} from '../http/responses/envelope.ts'
import { Problem } from '../../lib/problems.ts'
import { openapiDocument as documentOf } from '../schemas/openapi.ts'
import type { Operation } from '../http/operation.ts'
import type { ApiName } from '../../auth/principal/permissions.ts'
import type { RequestContext } from '../http/request-context.ts'
import { openapiSchema, specSchema, specBodySchema } from '../schemas/about.ts'
import type { ApiVersionsKey, VersionInfo } from '../api-deps.ts'

interface SpecOperationsDeps {
  readonly version: VersionInfo
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

const YAML = 'text/yaml'

/**
 * Operations that serve the OpenAPI documents, which are generated from all operations at the first
 * request.
 */
export function specOperations(
  deps: SpecOperationsDeps,
  others: readonly Operation[],
): Operation[] {
  const documents = new Map<ApiName, Buffer>()
  const operations: Operation[] = []
  // One buffer for each document, which all responses share, so that clients that read slowly need
  // no additional memory.
  const bytesOf = (api: ApiName): Buffer => {
    const known = documents.get(api)
    if (known !== undefined) return known
    const bytes = Buffer.from(JSON.stringify(documentOf(api, [...others, ...operations], deps)))
    documents.set(api, bytes)
    return bytes
  }
  // Each document is compressed once and cached: it is about a megabyte long and compresses well.
  const compressed = new Map<ApiName, Buffer>()
  const documentAnswer = (call: RequestContext): Reply => {
    const { api } = call
    const vary = { vary: 'accept-encoding' }
    if (!acceptedCodings(call.headers['accept-encoding']).has('gzip')) {
      return { ...responseWithoutEnvelope(bytesOf(api)), headers: vary }
    }
    const bytes = compressed.get(api) ?? gzipSync(bytesOf(api))
    compressed.set(api, bytes)
    return { ...responseWithoutEnvelope(bytes), headers: { ...vary, 'content-encoding': 'gzip' } }
  }
  const apiOf = (call: RequestContext): ApiName => {
    const id = call.param('id')
    if (id === 'edge-client') return 'client'
    if (id === 'edge-management') return 'management'
    throw new Problem('NOT_FOUND', { detail: `spec with id ${id} not found` })
  }
  const common = {
    tag: 'informational',
    method: 'GET',
    permission: 'public',
    success: 200,
  } as const
  const both = ['client', 'management'] as const
  operations.push(
    {
      ...common,
      operationId: 'getOpenapi',
      summary: 'Get this OpenAPI document',
      apis: [...both, 'fabric'],
      path: '/openapi.json',
      response: { kind: 'bare', schema: openapiSchema },
      headers: [
        {
          name: 'accept-encoding',
          description: 'the document is compressed if the header contains gzip',
        },
      ],
      handle: (call) => documentAnswer(call),
    },
    {
      ...common,
      operationId: 'listSpecs',
      summary: 'List the API specifications',
      apis: both,
      path: '/specs',
      response: { kind: 'list', schema: specSchema },
      handle: () =>
        listResponse([specOf(deps, 'edge-client')], { limit: 1, offset: 0, totalCount: 1 }, []),
    },
    {
      ...common,
      operationId: 'detailSpec',
      summary: 'Show an API specification',
      apis: both,
      path: '/specs/{id}',
      response: { kind: 'detail', schema: specSchema },
      refusals: [404],
      handle: (call) => {
        apiOf(call)
        return detailResponse(specOf(deps, call.param('id')))
      },
    },
    {
      ...common,
      operationId: 'detailSpecBody',
      summary: 'OpenAPI 3.1 document',
      apis: both,
      path: '/specs/{id}/spec',
      response: { kind: 'bare', schema: specBodySchema, types: ['application/json', YAML] },
      refusals: [404],
      handle: (call): Reply => {
        return responseWithoutEnvelope(
          bytesOf(apiOf(call)),
          call.accept.includes(YAML) ? YAML : 'application/json',
        )
      },
    },
  )
  return operations
}

function specOf({ version }: SpecOperationsDeps, id: string): Record<string, unknown> {
  const self = `./specs/${id}`
  return {
    _links: { self: { href: self }, spec: { href: `${self}/spec` } },
    createdAt: version.buildDate,
    id,
    name: id,
    tags: {},
    updatedAt: version.buildDate,
  }
}

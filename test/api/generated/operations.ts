import { entities } from '../../../src/entities/registry.ts'
import type { Entity } from '../../../src/entities/define-entity.ts'
import {
  type ApiDocument,
  type ApiName,
  bases,
  type Item,
  type Parameter,
} from '../../support/served-answers.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** An operation as the OpenAPI document describes it. */
export interface ServedOperation {
  readonly api: ApiName
  readonly method: Method
  /** Path below the base path, with parameters as `{name}`. */
  readonly path: string
  readonly operationId: string
  readonly query: readonly Parameter[]
  /** Body of the request, its schema with all references resolved; null if it has no body. */
  readonly body: {
    readonly schema: Item
    readonly isRequired: boolean
    /** Content types of the body other than JSON. */
    readonly otherTypes: readonly string[]
  } | null
  readonly isPublic: boolean
  /** True if only callers at the admin socket may use it. */
  readonly isSocketOnly: boolean
  /** Declared status codes, without `default`. */
  readonly statuses: readonly number[]
  /** True if the response is a list of records with pagination. */
  readonly isList: boolean
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export function operationsIn(api: ApiName, document: ApiDocument): ServedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method.toLowerCase()]
      if (described === undefined) return []
      const { operationId, security, parameters, requestBody, responses } = described
      const content = requestBody?.content['application/json']
      const query = parameters.filter((parameter) => parameter.in === 'query')
      return [
        {
          api,
          method,
          path,
          operationId,
          query,
          body:
            content === undefined || requestBody === undefined
              ? null
              : {
                  schema: resolved(document, content.schema),
                  isRequired: requestBody.required,
                  otherTypes: Object.keys(requestBody.content).filter(
                    (type) => type !== 'application/json',
                  ),
                },
          isPublic: security.length === 0,
          isSocketOnly: described['x-admin-socket-only'] === true,
          statuses: Object.keys(responses).map(Number).filter(Number.isInteger),
          isList: method === 'GET' && query.some(({ name }) => name === 'filter'),
        },
      ]
    }),
  )
}

/**
 * The schema with all references resolved; this ends, because request bodies do not refer to
 * themselves.
 */
function resolved(document: ApiDocument, schema: Item): Item {
  const ref = schema['$ref']
  if (typeof ref !== 'string') return schema
  const name = ref.replace('#/components/schemas/', '')
  return document.components.schemas[name] ?? {}
}

/** The collection of a path, for example `/services` for `/services/{id}/configs`. */
export function collectionOf(path: string): string {
  return `/${path.split('/')[1] ?? ''}`
}

/** The kind whose records are created in this collection. */
export function entityAt(collection: string): Entity | undefined {
  return entities.find((entity) => `/${entity.collection}` === collection)
}

export function urlOf(
  { api, path }: ServedOperation,
  ids: Readonly<Record<string, string>>,
): string {
  return (
    bases[api] +
    path.replace(/\{([A-Za-z]+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? ''))
  )
}

/** Names of the parameters in the path of an operation. */
export function pathParameters({ path }: ServedOperation): string[] {
  return [...path.matchAll(/\{([A-Za-z]+)\}/g)].map((match) => match[1] ?? '')
}

/** The part of JSON Schema that the served schemas use. */
export interface ServedSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, ServedSchema>>
  readonly required?: readonly string[]
  readonly items?: ServedSchema
  readonly enum?: readonly unknown[]
  readonly additionalProperties?: boolean | ServedSchema
  readonly description?: string
  readonly minimum?: number
  readonly minItems?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly title?: string
  readonly format?: string
  readonly const?: unknown
  readonly oneOf?: readonly ServedSchema[]
  readonly anyOf?: readonly ServedSchema[]
  readonly allOf?: readonly ServedSchema[]
  readonly if?: ServedSchema
  readonly then?: ServedSchema
  readonly else?: ServedSchema
}

/** An operation in the served OpenAPI document, in the form that forms and lists use. */
export interface ApiOperation {
  readonly operationId: string
  readonly summary: string
  /** Permission that the operation requires, such as `service.create`. */
  readonly permission: string
  readonly query: readonly string[]
  /** Schema of the request body, with references resolved. */
  readonly body: ServedSchema | null
  /** Schema of `data`; for a list, of each item in `data`. */
  readonly row: ServedSchema | null
}

interface ServedOperation {
  readonly operationId?: string
  readonly summary?: string
  readonly 'x-permission'?: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content?: Content }
  readonly responses?: Readonly<Record<string, { readonly content?: Content }>>
}
type Content = Readonly<Record<string, { readonly schema?: ServedSchema }>>

/** The part of the served OpenAPI document that the console uses. */
export interface ServedDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ServedOperation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, ServedSchema>> }
}

const SCHEMAS = '#/components/schemas/'
const DEPTH_MAX = 12

/** The OpenAPI document of the current controller. Pages and forms are generated from it. */
export class ApiDocument {
  readonly #document: ServedDocument

  constructor(document: ServedDocument) {
    this.#document = document
  }

  get paths(): readonly string[] {
    return Object.keys(this.#document.paths)
  }

  /** @param method HTTP method in lower case. */
  operation(method: string, path: string): ApiOperation | null {
    const served = this.#document.paths[path]?.[method]
    if (served === undefined) return null
    const body = schemaIn(served.requestBody?.content)
    const success = served.responses?.['200'] ?? served.responses?.['201']
    const data = schemaIn(success?.content)?.properties?.['data']
    const isList = data?.type === 'array'
    const row = isList ? data.items : data
    return {
      operationId: served.operationId ?? '',
      summary: served.summary ?? '',
      permission: served['x-permission'] ?? '',
      query: (served.parameters ?? []).filter((one) => one.in === 'query').map(({ name }) => name),
      body: body === null ? null : this.resolved(body),
      row: row === undefined ? null : this.resolved(row),
    }
  }

  /** Names of the lists below a record: for `/services/{id}/configs`, the last segment. */
  listsBelow(path: string): readonly string[] {
    const prefix = `${path}/{id}/`
    return this.paths.flatMap((known) => {
      const name = known.startsWith(prefix) ? known.slice(prefix.length) : ''
      if (name === '' || name.includes('/') || name.includes('{')) return []
      return this.#isList(known) ? [name] : []
    })
  }

  resolved(schema: ServedSchema, depth = 0): ServedSchema {
    if (depth > DEPTH_MAX) return {}
    if (schema.$ref !== undefined) {
      const name = schema.$ref.startsWith(SCHEMAS) ? schema.$ref.slice(SCHEMAS.length) : ''
      return this.resolved(this.#document.components?.schemas?.[name] ?? {}, depth + 1)
    }
    const { properties, items } = schema
    return {
      ...schema,
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              Object.entries(properties).map(([name, one]) => [
                name,
                this.resolved(one, depth + 1),
              ]),
            ),
          }),
      ...(items === undefined ? {} : { items: this.resolved(items, depth + 1) }),
    }
  }

  #isList(path: string): boolean {
    const served = this.#document.paths[path]?.['get']
    return schemaIn(served?.responses?.['200']?.content)?.properties?.['data']?.type === 'array'
  }
}

function schemaIn(content: Content | undefined): ServedSchema | null {
  return content?.['application/json']?.schema ?? null
}

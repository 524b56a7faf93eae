// Generates TypeScript types from the OpenAPI documents that a controller serves, for the
// operations that the console uses. `make console-types` writes them;
// test/console/served-types.test.ts fails when they are out of date.
//
// The package openapi-typescript cannot be used: it needs the compiler API of TypeScript 5, which
// TypeScript 7 does not have. Our schemas use few keywords of JSON Schema, and any other keyword is
// an error here.

export interface ServedSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly ServedSchema[]
  readonly items?: ServedSchema
  readonly properties?: Readonly<Record<string, ServedSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | ServedSchema
}

type Content = Readonly<Record<string, { readonly schema?: ServedSchema }>>

export interface ServedDocument {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly responses: Readonly<Record<string, { readonly content?: Content }>> }
        >
      >
    >
  >
  readonly components: { readonly schemas: Readonly<Record<string, ServedSchema>> }
}

const SCHEMAS = '#/components/schemas/'

/**
 * Types of the responses of operations. Links between records are omitted, because the console
 * constructs its own.
 * @param documents OpenAPI documents, by the base path of their API.
 * @param operations each as `GET /base/path`.
 * @throws {Error} for an operation that is not served, or a schema that cannot be converted.
 */
export function servedTypes(
  documents: Readonly<Record<string, ServedDocument>>,
  operations: readonly string[],
): string {
  const writer = new TypeWriter()
  const answers = operations.map((operation) => {
    const [method = '', path = ''] = operation.split(' ')
    const [base, document] = Object.entries(documents).find(([one]) => path.startsWith(one)) ?? []
    const served = document?.paths[path.slice(base?.length)]?.[method.toLowerCase()]
    const success = served?.responses['200'] ?? served?.responses['201']
    const schema = success?.content?.['application/json']?.schema
    if (document === undefined || schema === undefined) throw new Error(`no answer to ${operation}`)
    return `readonly '${operation}': ${writer.typeOf(document, schema, '')}`
  })
  return [
    '// Generated from the OpenAPI documents of a controller by `make console-types`. Do not edit.',
    ...writer.declarations(),
    `/** Bodies of answers, by operation. */\nexport interface ServedAnswers {\n${answers.join('\n')}\n}`,
    '',
  ].join('\n\n')
}

class TypeWriter {
  /** Text of the members of each interface, by its name. */
  readonly #named = new Map<string, string>()
  /** Name of each object type within a component, by its text. */
  readonly #inner = new Map<string, string>()

  /** Interfaces for the components, and for objects that occur in them more than once. */
  declarations(): string[] {
    const all = new Map(this.#named)
    const longestFirst = [...this.#inner].sort(([a], [b]) => b.length - a.length)
    for (const [text, name] of longestFirst) {
      const count = [...all.values()].reduce((sum, one) => sum + one.split(text).length - 1, 0)
      if (count < 2) continue
      for (const [owner, members] of all) all.set(owner, members.replaceAll(text, name))
      all.set(name, text)
    }
    return [...all]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, text]) => `export interface ${name} ${text}`)
  }

  /**
   * Converts a schema to a type. @param place name of the component, and the path to the schema
   * within it.
   */
  typeOf(document: ServedDocument, schema: ServedSchema, place: string): string {
    const { $ref, enum: values, anyOf, type } = schema
    if ($ref !== undefined) return this.#component(document, $ref)
    if (values !== undefined) return values.map((one) => JSON.stringify(one)).join(' | ')
    if (anyOf !== undefined) {
      return anyOf.map((one) => this.typeOf(document, one, place)).join(' | ')
    }
    return [type]
      .flat()
      .map((one) => this.#ofType(document, one, schema, place))
      .join(' | ')
  }

  #component(document: ServedDocument, ref: string): string {
    const schema = document.components.schemas[ref.slice(SCHEMAS.length)]
    if (!ref.startsWith(SCHEMAS) || schema === undefined) throw new Error(`no schema ${ref}`)
    const name = capitalized(ref.slice(SCHEMAS.length))
    if (!this.#named.has(name)) this.#named.set(name, this.#members(document, schema, name))
    return name
  }

  #ofType(
    document: ServedDocument,
    type: string | undefined,
    schema: ServedSchema,
    place: string,
  ): string {
    const { items, properties, additionalProperties } = schema
    switch (type) {
      case 'string':
      case 'boolean':
      case 'null':
        return type
      case 'integer':
      case 'number':
        return 'number'
      case 'array':
        return `readonly (${items === undefined ? 'unknown' : this.typeOf(document, items, place)})[]`
      case 'object': {
        if (properties !== undefined) {
          const text = this.#members(document, schema, place)
          if (!this.#inner.has(text)) this.#inner.set(text, place)
          return text
        }
        const isTyped = typeof additionalProperties === 'object'
        const value = isTyped ? this.typeOf(document, additionalProperties, place) : 'unknown'
        return `Readonly<Record<string, ${value}>>`
      }
      default:
        throw new Error(`${place} has no type`)
    }
  }

  #members(
    document: ServedDocument,
    { properties = {}, required = [] }: ServedSchema,
    place: string,
  ): string {
    const members = Object.entries(properties)
      .filter(([name]) => name !== '_links')
      .map(([name, one]) => {
        const mark = required.includes(name) ? '' : '?'
        return `readonly ${name}${mark}: ${this.typeOf(document, one, place + capitalized(name))}`
      })
    return `{\n${members.join('\n')}\n}`
  }
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

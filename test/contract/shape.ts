/**
 * A schema in either format: from the contract (Swagger 2) or from a served document (OpenAPI 3.1).
 */
export type Schema = Readonly<Record<string, unknown>>

/** Returns the schema to which a `$ref` refers; undefined if there is none. */
export type Resolve = (reference: string) => Schema | undefined

export interface Field {
  readonly name: string
  /** JSON types that the value may have, without `null`; empty: any type. */
  readonly types: readonly string[]
  readonly isRequired: boolean
}

/** Maximum depth to which references and parts are followed, so that circular references end. */
const depthMax = 8

/** The schema to which references lead. */
export function followed(schema: unknown, resolve: Resolve): Schema {
  let found = schema as Schema | undefined
  for (let depth = 0; depth < depthMax && typeof found?.['$ref'] === 'string'; depth += 1)
    found = resolve(found['$ref'])
  return found ?? {}
}

/** The schema of a list's elements, and whether it is a list; any other schema unchanged. */
export function rowOf(
  schema: unknown,
  resolve: Resolve,
): { readonly row: unknown; readonly isList: boolean } {
  const { type, items } = followed(schema, resolve)
  return type === 'array' || items !== undefined
    ? { row: items, isList: true }
    : { row: schema, isList: false }
}

/**
 * The members of an object and of its combined parts; a part that is one of several alternatives
 * makes no member required.
 */
export function fieldsOf(schema: unknown, resolve: Resolve, depth = 0): Map<string, Field> {
  const found = new Map<string, Field>()
  if (depth > depthMax) return found
  const one = followed(schema, resolve)
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const part of (one[key] ?? []) as readonly unknown[]) {
      for (const [name, field] of fieldsOf(part, resolve, depth + 1))
        found.set(name, { ...field, isRequired: key === 'allOf' && field.isRequired })
    }
  }
  for (const [name, value] of Object.entries((one['properties'] ?? {}) as Schema))
    found.set(name, { name, types: typesOf(value, resolve), isRequired: false })
  for (const name of (one['required'] ?? []) as readonly string[]) {
    const field = found.get(name)
    if (field !== undefined) found.set(name, { ...field, isRequired: true })
  }
  return found
}

function typesOf(schema: unknown, resolve: Resolve, depth = 0): string[] {
  if (depth > depthMax) return []
  const one = followed(schema, resolve)
  const named = [one['type'] ?? []].flat() as string[]
  if (named.length > 0) return named.filter((type) => type !== 'null')
  if (one['properties'] !== undefined) return ['object']
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    const parts = (one[key] ?? []) as readonly unknown[]
    const types = parts.map((part) => typesOf(part, resolve, depth + 1))
    if (types.some((some) => some.length > 0)) return [...new Set(types.flat())]
  }
  return []
}

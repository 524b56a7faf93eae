import type { NamedSchema } from '../../entities/operations.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'

// The TypeScript type of a body is derived from its schema, so that type and schema cannot differ.
// The derivation evaluates only keywords that affect the type of a value, not limits and formats.

type Properties = Readonly<Record<string, JsonObject>>

/**
 * A schema that accepts additional members; the response lists them as ignored
 * (`findIgnoredFields`).
 */
export function objectSchema<const P extends Properties, const R extends keyof P & string = never>(
  name: string,
  properties: P,
  required?: readonly R[],
): NamedSchema<ObjectSchema<P, R>> {
  const optional = required === undefined ? {} : { required }
  return { name, schema: { type: 'object', properties, ...optional } }
}

type ObjectSchema<P extends Properties, R extends string> = {
  readonly type: 'object'
  readonly properties: P
  readonly required?: readonly R[]
}

/** The type of the values that a schema accepts. */
export type SchemaValue<S> = S extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : S extends { readonly type: infer T }
    ? ValueOfType<T extends readonly (infer One)[] ? One : T, S>
    : Json

type ValueOfType<T, S> = T extends 'object'
  ? ObjectOf<S>
  : T extends 'array'
    ? readonly SchemaValue<S extends { readonly items: infer Items } ? Items : unknown>[]
    : T extends keyof Scalars
      ? Scalars[T]
      : never

interface Scalars {
  readonly string: string
  readonly integer: number
  readonly number: number
  readonly boolean: boolean
  readonly null: null
}

type ObjectOf<S> = S extends { readonly properties: infer P }
  ? {
      readonly [Name in keyof P as Name extends RequiredOf<S> ? Name : never]: SchemaValue<P[Name]>
    } & {
      readonly [Name in keyof P as Name extends RequiredOf<S> ? never : Name]?: SchemaValue<P[Name]>
    }
  : JsonObject

type RequiredOf<S> = S extends { readonly required?: infer Names }
  ? Names extends readonly (infer Name)[]
    ? Name
    : never
  : never

import { computedField, type ComputedField, type DetailVisibility } from './fields.ts'
import type { KindName } from './kind-names.ts'
import * as shapes from './response-schemas.ts'

interface RefRules {
  readonly shown?: DetailVisibility
}

/** A field of a detail that refers to the record of kind `to` whose ID is in the field `by`. */
export function referenceField(to: KindName, by: string, rules: RefRules = {}): ComputedField {
  return computedField({ from: 'entityRef', to, by }, shapes.entityRefSchema, rules)
}

/**
 * A field of a detail that refers to the record of kind `to` whose ID is in the optional field
 * `by`; null if that field is unset.
 */
export function nullableReferenceField(to: KindName, by: string): ComputedField {
  return computedField({ from: 'entityRef', to, by }, shapes.nullableEntityRefSchema)
}

/**
 * A reference with the additional member `urlName`: the name of the referenced kind in URL paths.
 */
export function referenceWithUrlNameField(
  to: KindName,
  by: string,
  rules: RefRules = {},
): ComputedField {
  const source = { from: 'entityRef', to, by, hasUrlName: true } as const
  return computedField(source, shapes.entityRefWithUrlNameSchema, rules)
}

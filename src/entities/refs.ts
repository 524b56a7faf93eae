import { computed, type ComputedField, type Shown } from './fields.ts'
import type { KindName } from './kind-names.ts'
import * as shapes from './shapes.ts'

interface RefRules {
  readonly shown?: Shown
}

/** Reference to the record of kind `to` in the field `by`, as every detail shows references. */
export function referenceField(to: KindName, by: string, rules: RefRules = {}): ComputedField {
  return computed({ from: 'entityRef', to, by }, shapes.entityRef, rules)
}

/** Reference of an optional field; null when it is unset. */
export function nullableReferenceField(to: KindName, by: string): ComputedField {
  return computed({ from: 'entityRef', to, by }, shapes.nullableEntityRef)
}

/** Reference with the name that the record has in URLs. */
export function referenceWithUrlNameField(
  to: KindName,
  by: string,
  rules: RefRules = {},
): ComputedField {
  const source = { from: 'entityRef', to, by, hasUrlName: true } as const
  return computed(source, shapes.entityRefWithUrlName, rules)
}

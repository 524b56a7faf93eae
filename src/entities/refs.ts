import { computed, type ComputedField, type Shown } from './fields.ts'
import type { KindName } from './kind-names.ts'
import * as shapes from './shapes.ts'

interface RefRules {
  readonly shown?: Shown
}

/** The record of the kind `to` that the field `by` names, as every detail shows others. */
export function refOf(to: KindName, by: string, rules: RefRules = {}): ComputedField {
  return computed({ from: 'entityRef', to, by }, shapes.entityRef, rules)
}

/** Reference of a field that may name none: null then. */
export function nullableRefOf(to: KindName, by: string): ComputedField {
  return computed({ from: 'entityRef', to, by }, shapes.nullableEntityRef)
}

/** Reference with the name that the record has in URLs. */
export function refWithUrlNameOf(to: KindName, by: string, rules: RefRules = {}): ComputedField {
  const source = { from: 'entityRef', to, by, hasUrlName: true } as const
  return computed(source, shapes.entityRefWithUrlName, rules)
}

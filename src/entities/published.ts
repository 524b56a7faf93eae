import type { ComputedField, Field } from './fields.ts'

type Fields = Readonly<Record<string, Field>>

/** A field that is shown or withheld in events about the records of its kind. */
export interface DecidedField extends Field {
  readonly published: 'shown' | 'withheld'
}

/** Stored fields of which each says whether it is published, and any computed ones. */
export type DecidedFields = Readonly<Record<string, DecidedField | ComputedField>>

type Decided<F> = {
  readonly [K in keyof F]: F[K] extends DecidedField | ComputedField ? F[K] : F[K] & DecidedField
}

function decide<F extends Fields>(fields: F, published: DecidedField['published']): Decided<F> {
  const decided: Record<string, Field> = {}
  for (const [name, field] of Object.entries(fields)) {
    const isOpen = field.published === null && field.computed === null
    decided[name] = isOpen ? { ...field, published } : field
  }
  return decided as Decided<F>
}

/** Fields that events show, in this order; those within that are `withheld` stay so. */
export function published<const F extends Fields>(fields: F): Decided<F> {
  return decide(fields, 'shown')
}

/** Fields that are secrets, lead to one, or are of no use outside: no event shows them. */
export function withheld<const F extends Fields>(fields: F): Decided<F> {
  return decide(fields, 'withheld')
}

import type { ComputedField, Field } from './fields.ts'

type Fields = Readonly<Record<string, Field>>

/** A field with a decision whether events show it. */
interface DecidedField extends Field {
  readonly published: 'shown' | 'withheld'
}

/** Stored fields, each with a decision whether events show it, and any computed fields. */
export type EventVisibilityFields = Readonly<Record<string, DecidedField | ComputedField>>

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

/** Marks fields as shown in events; keeps the mark of fields that are already `withheld`. */
export function markShownInEvents<const F extends Fields>(fields: F): Decided<F> {
  return decide(fields, 'shown')
}

/**
 * Marks fields as never shown in events: secrets, references to secrets, and internal values. Keeps
 * the mark of fields that are already `shown`.
 */
export function markHiddenFromEvents<const F extends Fields>(fields: F): Decided<F> {
  return decide(fields, 'withheld')
}

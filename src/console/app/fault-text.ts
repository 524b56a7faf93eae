import { texts } from '../texts.ts'

/** The invalid field and the reason, as a controller reports them. */
export interface RefusedField {
  readonly field: string
  readonly reason: string
}

/** Position of the change at the start of a refused preview: `changes.N.data.`, `changes.N: `. */
const OF_CHANGE = /^changes\.(\d+)(?:\.data)?(?:\.|: |$)/

/** The name of a field or the text of a refusal, without the position of the change. */
export function withoutChangePosition(text: string): string {
  return text.replace(OF_CHANGE, '')
}

/** The position of the change that a preview refuses; null: the text names none. */
export function refusedChange(text: string): number | null {
  const [, at] = OF_CHANGE.exec(text) ?? []
  return at === undefined ? null : Number(at)
}

const DUPLICATE = /^duplicate value '.*' in unique index on \w+ store$|must be unique$/s

/**
 * The reason of a refusal in the console's words, without the field's name, because the field is
 * shown beside it.
 */
export function faultText({ field, reason }: RefusedField): string {
  const { faults } = texts
  if (DUPLICATE.test(reason)) return faults.duplicate
  const own = withoutField(field, reason)
  if (own === 'is required') return faults.required
  return own.slice(0, 1).toUpperCase() + own.slice(1)
}

/**
 * Removes the field's name: controllers write `port is invalid: must be integer`, or `port in body
 * must be …`.
 */
function withoutField(field: string, reason: string): string {
  if (!reason.startsWith(`${field} `)) return reason
  const rest = reason.slice(field.length + 1)
  return rest.replace(/^(in (body|query) |is invalid: )/, '')
}

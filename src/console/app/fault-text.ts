import { texts } from '../texts.ts'

/** A refused field, as a controller names it. */
export interface RefusedField {
  readonly field: string
  readonly reason: string
}

const DUPLICATE = /^duplicate value '.*' in unique index on \w+ store$|must be unique$/s

/** The reason of a refusal in the words of the console; the field itself is shown beside it. */
export function faultText({ field, reason }: RefusedField): string {
  const { faults } = texts
  if (DUPLICATE.test(reason)) return faults.duplicate
  const own = withoutField(field, reason)
  if (own === 'is required') return faults.required
  return own.slice(0, 1).toUpperCase() + own.slice(1)
}

/** Controllers write `port is invalid: must be integer`, or `port in body must be …`. */
function withoutField(field: string, reason: string): string {
  if (!reason.startsWith(`${field} `)) return reason
  const rest = reason.slice(field.length + 1)
  return rest.replace(/^(in (body|query) |is invalid: )/, '')
}

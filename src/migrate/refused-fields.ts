import { checkFields } from '../entities/check-fields.ts'
import type { Entity } from '../entities/define-entity.ts'
import type { Field } from '../entities/fields.ts'
import type { FieldFault } from '../lib/problems.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { firstUnprintableCharacter } from '../lib/text/terminal-text.ts'

/**
 * Values in a record that a write through the API would refuse. The state can contain them, but any
 * later change of the record fails until they are corrected.
 */
export function findRefusedFields(entity: Entity, fields: JsonObject): FieldFault[] {
  const found: FieldFault[] = []
  // Checks only fields that clients can write: a write through the API does not check the others.
  const written = Object.fromEntries(
    Object.entries(fields).filter(([name]) => entity.fields[name]?.settable !== 'never'),
  )
  const fault = checkFields(entity, written)
  if (fault !== null) found.push(fault)
  for (const [name, value] of Object.entries(written)) {
    const field = entity.fields[name]
    const reason = field === undefined ? null : boundFault(field, value)
    if (reason !== null) found.push({ field: name, reason })
  }
  return found
}

/** The limit that a value violates, as one clause; null if it violates none. */
function boundFault({ schema, isPrintable }: Field, value: Json): string | null {
  const { maxLength, maxItems, maxProperties, maximum, minimum, items } = schema as Readonly<
    Partial<Record<string, Json>>
  >
  if (typeof value === 'string') {
    if (isAbove(value.length, maxLength)) return `it has more than ${String(maxLength)} characters`
    const character = isPrintable ? firstUnprintableCharacter(value) : null
    return character === null ? null : `it contains the control character ${character}`
  }
  if (typeof value === 'number') {
    if (isAbove(value, maximum)) return `it is above ${String(maximum)}`
    return typeof minimum === 'number' && value < minimum ? `it is below ${minimum}` : null
  }
  if (!Array.isArray(value)) {
    const count = value === null || typeof value === 'boolean' ? 0 : Object.keys(value).length
    return isAbove(count, maxProperties)
      ? `it has more than ${String(maxProperties)} members`
      : null
  }
  if (isAbove(value.length, maxItems)) return `it has more than ${String(maxItems)} entries`
  const { maxLength: itemMax } = { ...(items as Partial<Record<string, Json>> | undefined) }
  const texts = (value as readonly Json[]).filter((one) => typeof one === 'string')
  const isLong = texts.some((one) => isAbove(one.length, itemMax))
  return isLong ? `an entry has more than ${String(itemMax)} characters` : null
}

function isAbove(value: number, maximum: Json | undefined): boolean {
  return typeof maximum === 'number' && value > maximum
}

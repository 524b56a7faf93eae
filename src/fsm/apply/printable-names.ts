import type { Entity } from '../../entities/define-entity.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { firstUnprintableCharacter } from '../../lib/text/terminal-text.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { fieldFaultOutcome } from './outcome.ts'

/**
 * Feature level from which names must not contain control characters that a terminal would
 * interpret.
 */
const PRINTABLE_FROM_LEVEL = 2

type Levelled = Pick<State, 'featureLevel'>

/**
 * The refusal for the first field in a write whose value is a name with unprintable characters;
 * null if there is none. A name that the record already has is accepted, so that its other fields
 * can be changed.
 * @param before undefined for a new record.
 */
export function unprintableFieldsRefusal(
  state: Levelled,
  entity: Entity,
  before: EntityRecord | undefined,
  fields: JsonObject,
): Outcome | null {
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (entity.fields[name]?.isPrintable !== true || typeof value !== 'string') continue
    const fault = value === before?.[name] ? null : unprintableNameRefusal(state, name, value)
    if (fault !== null) return fault
  }
  return null
}

/**
 * Refusal of a name with unprintable characters; null if the name is printable, or if the feature
 * level is too low to refuse it.
 * @param field name of the field with the text.
 */
export function unprintableNameRefusal(
  state: Levelled,
  field: string,
  text: string,
): Outcome | null {
  if (state.featureLevel < PRINTABLE_FROM_LEVEL) return null
  const found = firstUnprintableCharacter(text)
  if (found === null) return null
  const reason = `${field} must not contain control characters or controls of the text direction, found ${found}`
  return fieldFaultOutcome({ field, reason })
}

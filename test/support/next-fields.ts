import type { Entity } from '../../src/entities/define-entity.ts'
import {
  roleAttributesField,
  booleanField,
  integerField,
  objectField,
  textField,
} from '../../src/entities/fields.ts'

/**
 * One more than FEATURE_LEVEL. It is not computed from that constant, because mocks of the constant
 * run while this module loads.
 */
export const NEXT_LEVEL = 4

/**
 * Fields of several kinds that an imagined next version adds to a descriptor, all with the next
 * feature level.
 */
export const nextFields = {
  owner: textField({ since: NEXT_LEVEL, charactersMax: 100 }),
  isCritical: booleanField({ since: NEXT_LEVEL }),
  weight: integerField({ since: NEXT_LEVEL, minimum: 1 }),
  zones: roleAttributesField({ since: NEXT_LEVEL }),
  window: objectField(
    { type: 'object', additionalProperties: true },
    { from: 0, days: ['all'] },
    { since: NEXT_LEVEL },
  ),
}

/** The descriptor with these fields in addition to its own. */
export function withNextFields<E extends Pick<Entity, 'fields' | 'fieldNames'>>(entity: E): E {
  const fields = { ...entity.fields, ...nextFields }
  return { ...entity, fields, fieldNames: Object.keys(fields).sort() }
}

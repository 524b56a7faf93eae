import { attributes, boolean, integer, object, text } from '../../src/entities/fields.ts'

/** What the next generation of descriptors adds to services: fields of several kinds, all of feature level 2. */
export const nextFields = {
  owner: text({ since: 2, charactersMax: 100 }),
  isCritical: boolean({ since: 2 }),
  weight: integer({ since: 2, minimum: 1 }),
  zones: attributes({ since: 2 }),
  window: object(
    { type: 'object', additionalProperties: true },
    { from: 0, days: ['all'] },
    { since: 2 },
  ),
}

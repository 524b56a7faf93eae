import { defineEntity, type EntityOf } from '../define-entity.ts'
import { choiceField, computedField, idReferenceField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { referenceField } from '../reference-fields.ts'
import { textSchema } from '../response-schemas.ts'

/**
 * Permission of an API session to dial or bind one service; at most one per service and type. The
 * service session token, which routers accept, is signed for each request and not stored; the field
 * `token` in the detail is the id of the service session.
 */
export const session = defineEntity({
  name: 'session',
  plural: 'sessions',
  isPublished: true,
  operations: {},
  fields: markShownInEvents({
    apiSessionId: idReferenceField('apiSession', 'cascade', { settable: 'never' }),
    identityId: idReferenceField('identity', 'cascade', { settable: 'never' }),
    serviceId: idReferenceField('service', 'cascade', { settable: 'never' }),
    type: choiceField(['Dial', 'Bind'], { settable: 'never' }),
    apiSession: referenceField('apiSession', 'apiSessionId'),
    service: referenceField('service', 'serviceId'),
    token: computedField({ from: 'field', field: 'id' }, textSchema),
  }),
  symbols: [
    { name: 'apiSession', field: 'apiSessionId' },
    { name: 'service', field: 'serviceId' },
    { name: 'type', field: 'type', numbered: ['Dial', 'Bind'] },
  ],
  weighed: { field: 'tags', by: 'identityId' },
  links: ['route-path'],
  digest: 'state',
})

export type Session = EntityOf<typeof session>

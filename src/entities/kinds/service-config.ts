import { defineEntity } from '../define-entity.ts'
import { idReferenceField, textField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import { referenceField } from '../reference-fields.ts'

/**
 * A config that replaces, for one identity, the service's own config of the same type. The record's
 * id is built from identity, service and config type, so there is at most one for each combination.
 */
export const serviceConfig = defineEntity({
  name: 'serviceConfig',
  plural: 'serviceConfigs',
  isPublished: true,
  operations: {},
  fields: markShownInEvents({
    identityId: idReferenceField('identity', 'cascade', { required: true }),
    serviceId: idReferenceField('service', 'cascade', { required: true }),
    configId: idReferenceField('config', 'refuse', { required: true }),
    /**
     * `<identity id>:<service id>`; the index on this field finds the configs of an identity for a
     * service.
     */
    ...markHiddenFromEvents({ holder: textField({ settable: 'never', shown: 'never' }) }),
    config: referenceField('config', 'configId'),
    service: referenceField('service', 'serviceId'),
  }),
  indexes: ['holder'],
  symbols: [],
})

/** Value of the field `holder` for one identity and one service. */
export function serviceConfigHolder(identityId: string, serviceId: string): string {
  return `${identityId}:${serviceId}`
}

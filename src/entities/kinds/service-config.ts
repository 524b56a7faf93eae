import { defineEntity } from '../define.ts'
import { reference, text } from '../fields.ts'
import { published, withheld } from '../published.ts'
import { referenceField } from '../refs.ts'

/**
 * A config that replaces the service's own config of that type for one identity. Its id is built
 * from identity, service and config type, so there is at most one of each.
 */
export const serviceConfig = defineEntity({
  name: 'serviceConfig',
  plural: 'serviceConfigs',
  isPublished: true,
  operations: {},
  fields: published({
    identityId: reference('identity', 'cascade', { required: true }),
    serviceId: reference('service', 'cascade', { required: true }),
    configId: reference('config', 'refuse', { required: true }),
    /** `<identity id>:<service id>`: finds the configs of an identity for a service. */
    ...withheld({ holder: text({ settable: 'never', shown: 'never' }) }),
    config: referenceField('config', 'configId'),
    service: referenceField('service', 'serviceId'),
  }),
  indexes: ['holder'],
  symbols: [],
})

/** Value of `holder`: finds the overrides of one identity for one service. */
export function serviceConfigHolder(identityId: string, serviceId: string): string {
  return `${identityId}:${serviceId}`
}

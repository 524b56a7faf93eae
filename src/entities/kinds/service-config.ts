import { defineEntity, type EntityOf } from '../define.ts'
import { reference, text } from '../fields.ts'
import { published, withheld } from '../published.ts'
import { refOf } from '../refs.ts'

/**
 * A config that an identity gets of a service in place of the service's own of that type. Its id is
 * made of identity, service and config type, so there is one for each.
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
    /** `<identity id>:<service id>`: leads from the two to what the one gets of the other. */
    ...withheld({ holder: text({ settable: 'never', shown: 'never' }) }),
    config: refOf('config', 'configId'),
    service: refOf('service', 'serviceId'),
  }),
  indexes: ['holder'],
  symbols: [],
})

export type ServiceConfig = EntityOf<typeof serviceConfig>

export function serviceConfigHolder(identityId: string, serviceId: string): string {
  return `${identityId}:${serviceId}`
}

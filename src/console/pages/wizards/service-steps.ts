import { collectionApiPath } from '../records/record-data.ts'
import { texts } from '../../texts.ts'
import type { WizardStep } from './steps.ts'

/** The fields of the service wizard. */
export interface ServiceWizardInput {
  readonly name: string
  /** Host name at which clients reach the service, like `wiki.internal`. */
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp'
  /** Address at which the hosting identities reach the server. */
  readonly hostAddress: string
  readonly hostPort: number
  readonly dialRoles: readonly string[]
  readonly bindRoles: readonly string[]
}

/** Ids of OpenZiti's config types, which are the same in every network. */
export interface ConfigTypeIds {
  readonly intercept: string
  readonly host: string
}

/** The records that make up one service, in the order of their creation. */
export function serviceSteps(
  service: ServiceWizardInput,
  types: ConfigTypeIds,
): readonly WizardStep[] {
  const { name, address, port, protocol, hostAddress, hostPort } = service
  const { steps } = texts.wizards
  const policy = (type: 'Dial' | 'Bind', roles: readonly string[]): WizardStep => ({
    title: type === 'Dial' ? steps.dial : steps.bind,
    call: ([, , id = '']) => ({
      method: 'POST',
      path: collectionApiPath('service-policies'),
      body: {
        name: `${name} ${type.toLowerCase()}`,
        type,
        semantic: 'AnyOf',
        serviceRoles: [`@${id}`],
        identityRoles: roles,
      },
    }),
  })
  return [
    {
      title: steps.intercept,
      call: () => ({
        method: 'POST',
        path: collectionApiPath('configs'),
        body: {
          name: `${name} intercept`,
          configTypeId: types.intercept,
          data: {
            protocols: [protocol],
            addresses: [address],
            portRanges: [{ low: port, high: port }],
          },
        },
      }),
    },
    {
      title: steps.host,
      call: () => ({
        method: 'POST',
        path: collectionApiPath('configs'),
        body: {
          name: `${name} host`,
          configTypeId: types.host,
          data: { protocol, address: hostAddress, port: hostPort },
        },
      }),
    },
    {
      title: steps.service,
      call: ([intercept = '', host = '']) => ({
        method: 'POST',
        path: collectionApiPath('services'),
        body: { name, encryptionRequired: true, configs: [intercept, host] },
      }),
    },
    policy('Dial', service.dialRoles),
    policy('Bind', service.bindRoles),
  ]
}

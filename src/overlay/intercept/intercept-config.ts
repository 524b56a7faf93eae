import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { serviceLimits } from '../services/limits.ts'
import {
  sourceAddressesFault,
  interceptAddressFault,
  readInterceptTarget,
} from '../../lib/intercept/intercept-target.ts'
import { ServiceConfigReader, PORT_MAX, type PortRange } from '../services/service-config-reader.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import type { IpNetwork } from '../../lib/text/networks.ts'

/**
 * The connections that a tunnel intercepts on its host for a service, and options for dialing the
 * service.
 */
export interface InterceptConfig {
  readonly protocols: ReadonlySet<TunnelProtocol>
  readonly networks: readonly IpNetwork[]
  readonly names: ReadonlySet<string>
  /** Domains of wildcard names: `example` for `*.example`. */
  readonly domains: ReadonlySet<string>
  readonly ports: readonly PortRange[]
  /** Why some addresses of the config are not intercepted, each as a clause for a message. */
  readonly faults: readonly string[]
  /** null if the option of the listener applies. */
  readonly connectTimeoutMs: number | null
  /**
   * Templates for the instance to dial, and for the source address (`source_addr`) that the host of
   * the service receives; '' for none.
   */
  readonly instance: string
  readonly source: string
}

/** Config types for interception. If a service has several, the first one in this list is used. */
export const interceptConfigTypes = ['intercept.v1', 'ziti-tunneler-client.v1'] as const
export type InterceptConfigType = (typeof interceptConfigTypes)[number]

/** @throws {ServiceConfigFault} */
export function parseInterceptConfig(type: InterceptConfigType, dataJson: string): InterceptConfig {
  const data = new ServiceConfigReader(type, parseJsonOrNull(dataJson))
  switch (type) {
    case 'intercept.v1':
      return termsOf(data)
    case 'ziti-tunneler-client.v1': {
      const port = data.integer('port', 1, PORT_MAX) ?? data.fault('port', 'is missing')
      return {
        ...targetsOf(data, 'hostname', [data.requiredText('hostname')]),
        protocols: new Set(['tcp', 'udp'] as const),
        ports: [{ low: port, high: port }],
        connectTimeoutMs: null,
        instance: '',
        source: '',
      }
    }
  }
}

function termsOf(data: ServiceConfigReader): InterceptConfig {
  if (data.texts('allowedSourceAddresses').length > 0) {
    data.fault('allowedSourceAddresses', sourceAddressesFault)
  }
  const dial = data.within('dialOptions')
  const seconds = dial.integer('connectTimeoutSeconds', 0, 2_147_483_647) ?? 0
  const ms = Math.min(seconds * 1000, serviceLimits.hostConnectMsMax)
  return {
    ...targetsOf(data, 'addresses', data.someTexts('addresses')),
    protocols: new Set(
      data
        .someTexts('protocols')
        .map((text) =>
          text === 'tcp' || text === 'udp'
            ? text
            : data.fault('protocols', `has ${text}, which is neither tcp nor udp`),
        ),
    ),
    ports: data
      .portRanges('portRanges')
      .map(({ low, high }) =>
        low >= 1 && low <= high
          ? { low, high }
          : data.fault('portRanges', `has ${low} to ${high}, which is no range of ports`),
      ),
    connectTimeoutMs: ms > 0 ? ms : null,
    instance: dial.text('identity') ?? '',
    source: data.text('sourceIp') ?? '',
  }
}

function targetsOf(
  data: ServiceConfigReader,
  member: string,
  texts: readonly string[],
): Pick<InterceptConfig, 'networks' | 'names' | 'domains' | 'faults'> {
  const networks: IpNetwork[] = []
  const faults: string[] = []
  const [names, domains] = [new Set<string>(), new Set<string>()]
  for (const text of texts) {
    const target = readInterceptTarget(text)
    if (target === null) faults.push(`${text} ${interceptAddressFault}`)
    else if (target.type === 'network') networks.push(target.network)
    else if (target.type === 'domain') domains.add(target.name)
    else names.add(target.name)
  }
  const [first] = texts
  if (first !== undefined && faults.length === texts.length) {
    data.fault(member, `has ${first}, which ${interceptAddressFault}`)
  }
  return { networks, names, domains, faults }
}

import { isObject } from './json-values.ts'

/** Where clients find a service, and where its host reaches the server. */
export interface ServiceAddresses {
  readonly clientAddress?: string
  readonly hostAddress?: string
}

type Data = Readonly<Record<string, unknown>>
type AddressReader = (data: Data) => readonly string[]

/** The config types of OpenZiti with addresses for clients. */
const clientReaders: Readonly<Record<string, AddressReader>> = {
  'intercept.v1': ({ addresses, portRanges }) => {
    const ports = objects(portRanges).map((range) => portRangeText(range) ?? '')
    const suffix = ports.length === 0 ? '' : `:${ports.join(',')}`
    return texts(addresses).map((one) => hostOf(one) + suffix)
  },
  'ziti-tunneler-client.v1': ({ hostname, port }) => [join(hostname, port)],
}

/** The config types of OpenZiti with an address at the host. */
const hostReaders: Readonly<Record<string, AddressReader>> = {
  'host.v1': (data) => [hostAddress(data)],
  'host.v2': ({ terminators }) => objects(terminators).map(hostAddress),
  'ziti-tunneler-server.v1': ({ protocol, hostname, port }) => [
    `${String(protocol ?? '')} ${join(hostname, port)}`.trim(),
  ],
}

/**
 * The protocol, address and port of a host; for a part that the client chooses, the values that the
 * config allows.
 */
function hostAddress(data: Data): string {
  const { protocol, address, port, allowedProtocols, allowedAddresses, allowedPortRanges } = data
  const ranges = clientReaders['intercept.v1']?.({
    addresses: [typeof address === 'string' ? address : texts(allowedAddresses).join(',')],
    portRanges: port === undefined ? allowedPortRanges : [{ low: port, high: port }],
  })
  const shown = typeof protocol === 'string' ? protocol : texts(allowedProtocols).join('/')
  return `${shown} ${ranges?.join('') ?? ''}`.trim()
}

/** A port or a range of ports; null for another object. */
export function portRangeText({ low, high, ...others }: Data): string | null {
  if (low === undefined || high === undefined || Object.keys(others).length > 0) return null
  return low === high ? String(low) : `${String(low)}-${String(high)}`
}

function join(host: unknown, port: unknown): string {
  return typeof host !== 'string'
    ? ''
    : port === undefined
      ? host
      : `${hostOf(host)}:${String(port)}`
}

/** An IPv6 address in brackets, so that its port is visible. */
function hostOf(address: string): string {
  return /^[0-9a-f]*:[0-9a-f:.]*$/i.test(address) ? `[${address}]` : address
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function objects(value: unknown): readonly Data[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The addresses in the configs of a service; an address that no config contains is absent. */
export function serviceAddresses(configs: readonly Data[]): ServiceAddresses {
  const read = (readers: Readonly<Record<string, AddressReader>>): string =>
    configs
      .flatMap(({ configType, data }) => {
        const type = isObject(configType) ? String(configType['name']) : ''
        return isObject(data) && Object.hasOwn(readers, type) ? (readers[type]?.(data) ?? []) : []
      })
      .filter((one) => one !== '')
      .join(', ')
  const [clientAddress, hostAddress] = [read(clientReaders), read(hostReaders)]
  return {
    ...(clientAddress === '' ? {} : { clientAddress }),
    ...(hostAddress === '' ? {} : { hostAddress }),
  }
}

import { lookup } from 'node:dns/promises'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { assert } from '../../lib/assert.ts'
import { clientSocketShare } from '../../lib/bounds/file-descriptors.ts'
import { formatHostPort, type HostPort, parseHostPort } from '../../lib/text/names.ts'
import { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import { routerLimits } from '../../fabric/limits.ts'
import { configuredApiLimits } from '../settings.ts'

type PortsLogger = ConstructorParameters<typeof TlsPortOpener>[0]['log']

/** Whether routers use the same port as this web listener, as in OpenZiti's packages. */
export function isPortSharedWithRouters(
  { routers }: Pick<ControllerConfig, 'routers'>,
  bind: string,
) {
  return routers.bind === bind
}

/**
 * The addresses of a configured `host:port`. A name such as localhost may have several addresses.
 */
export async function resolveBindAddresses(bind: string): Promise<HostPort[]> {
  const place = parseHostPort(bind)
  assert(place !== null, 'the configuration has checked the address')
  const hosts = await lookup(place.host, { all: true })
  return hosts.map(({ address }) => ({ host: address, port: place.port }))
}

/**
 * Opens the TLS ports of a controller. If routers and HTTP clients share a port, the limits of both
 * listeners apply. Only the first message of a connection shows to which listener it belongs. Until
 * then the higher limits apply, because with separate ports one of the listeners would admit the
 * connection.
 */
export async function openTlsPorts(
  config: ControllerConfig,
  log: PortsLogger,
): Promise<TlsPortOpener> {
  const { bind } = config.routers
  const isShared = config.web.some((listener) => listener.bind === bind)
  const shared = bind !== null && isShared ? await resolveBindAddresses(bind) : []
  const balancers = await balancersByAddress(config)
  const { connectionsMax, connectionsPerSourceMax, handshakeTimeoutMs } =
    configuredApiLimits(config)
  const { routerConnectionsMax, routerConnectionsPerSourceMax, routerHandshakeTimeoutMs } =
    routerLimits
  return new TlsPortOpener({
    addresses: [...shared, ...shared],
    balancers: (address) => balancers.get(formatHostPort(address)) ?? [],
    handshakeTimeoutMs: Math.max(handshakeTimeoutMs, routerHandshakeTimeoutMs),
    hellosWaitingMax: Math.max(connectionsMax, routerConnectionsMax),
    hellosWaitingPerSourceMax: Math.max(connectionsPerSourceMax, routerConnectionsPerSourceMax),
    room: clientSocketShare,
    log,
  })
}

async function balancersByAddress({
  routers,
  web,
}: ControllerConfig): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>()
  for (const { bind, proxyProtocol } of [routers, ...web]) {
    if (bind === null || proxyProtocol.from.length === 0) continue
    for (const address of await resolveBindAddresses(bind)) {
      found.set(formatHostPort(address), proxyProtocol.from)
    }
  }
  return found
}

import { parseHostPort } from '../../lib/text/names.ts'
import type { ControllerConfig } from './options.ts'

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '::1']

/**
 * DNS names and IP addresses at which peers, routers and clients reach this controller. The
 * controller's certificate must contain all of these hosts. If one of them is a loopback host, the
 * result contains all loopback hosts, because a client on the same host may use any of them.
 */
export function advertisedHosts({
  cluster,
  routers,
  web,
}: Pick<ControllerConfig, 'cluster' | 'routers' | 'web'>): string[] {
  const addresses = [
    cluster.advertise,
    ...routers.advertise,
    ...web.map(({ advertise }) => advertise),
  ]
  const hosts = [
    ...addresses.flatMap((address) => parseHostPort(address)?.host ?? []),
    ...web.flatMap(({ names }) => names),
  ]
  const isLocal = hosts.some((host) => LOOPBACK_HOSTS.includes(host))
  return [...new Set([...hosts, ...(isLocal ? LOOPBACK_HOSTS : [])])]
}

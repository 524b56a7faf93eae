import type { RouterConfig } from '../config/router/table.ts'
import type { HostPort } from '../lib/text/names.ts'
import { EDGE_BINDING } from './edge/edge.ts'

/**
 * Addresses of a router's TLS listeners for clients and for links. Listeners with the same address
 * share a port.
 */
export function routerTlsAddresses({ edge, link, listeners }: RouterConfig): readonly HostPort[] {
  const ofClients = edge === null ? [] : listeners.filter(({ binding }) => binding === EDGE_BINDING)
  return [...ofClients, ...(link?.listeners ?? [])].flatMap(({ bind }) =>
    bind?.protocol === 'tls' || bind?.protocol === 'wss' ? [bind] : [],
  )
}

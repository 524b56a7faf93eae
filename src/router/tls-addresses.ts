import type { RouterConfig } from '../config/router/table.ts'
import type { Address } from '../config/router/values.ts'
import { EDGE_BINDING } from './edge/edge.ts'

/** Addresses of TLS listeners that may share a port: those for links and for clients. */
export function tlsAddresses({ edge, link, listeners }: RouterConfig): readonly Address[] {
  const ofClients = edge === null ? [] : listeners.filter(({ binding }) => binding === EDGE_BINDING)
  return [...ofClients, ...(link?.listeners ?? [])].flatMap(({ bind }) =>
    bind?.protocol === 'tls' || bind?.protocol === 'wss' ? [bind] : [],
  )
}

import type { Server as TlsServer } from 'node:tls'

import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import { bindServer } from './bind-server.ts'
import {
  type BoundAddress,
  SharedTlsPort,
  type SharedTlsPortDeps,
  type ListeningTlsServer,
  type PortProtocols,
} from './shared-tls-port.ts'

interface TlsPortOpenerDeps extends Omit<SharedTlsPortDeps, 'balancers' | 'isShared'> {
  /** Addresses of all TLS servers. Servers with the same address share one port. */
  readonly addresses: readonly HostPort[]
  /** Networks of the load balancers in front of an address; empty if clients connect directly. */
  readonly balancers?: (bind: HostPort) => readonly string[]
}

/**
 * Opens the ports of TLS servers. Servers with the same address share one port, on which the
 * application protocol (ALPN) that a client offers selects the server. The selected server receives
 * the connection as if it had accepted it, so its certificates and limits apply unchanged. Behind
 * load balancers, the server sees the address of the client instead of the load balancer's.
 */
export class TlsPortOpener {
  readonly #deps: TlsPortOpenerDeps
  readonly #fronts = new Map<string, SharedTlsPort>()

  constructor(deps: TlsPortOpenerDeps) {
    this.#deps = deps
  }

  /**
   * @param key key of the address in the configuration.
   * @throws {ProgramFailure} when the server cannot listen.
   */
  async open(
    server: TlsServer,
    bind: BoundAddress,
    key: string,
    protocols: PortProtocols,
  ): Promise<ListeningTlsServer> {
    const balancers = this.#deps.balancers?.(bind) ?? []
    const isShared = this.#isShared(bind)
    if (!isShared && balancers.length === 0) {
      await bindServer(server, bind, key)
      return { port: listeningPort(server), close: () => closeServer(server) }
    }
    const name = formatHostPort(bind)
    const port = this.#fronts.get(name) ?? new SharedTlsPort({ ...this.#deps, balancers, isShared })
    await port.listen(bind, key)
    this.#fronts.set(name, port)
    return port.add(server, protocols)
  }

  #isShared(bind: HostPort): boolean {
    const same = this.#deps.addresses.filter(
      ({ host, port }) => host === bind.host && port === bind.port,
    )
    return bind.port !== 0 && same.length > 1
  }
}

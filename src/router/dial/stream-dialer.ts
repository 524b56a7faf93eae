import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'

import type { Address } from '../../config/router/values.ts'
import {
  DialFailure,
  type DialRequest,
  type LocalCircuits,
  type TerminatorDialer,
} from '../../overlay/circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../../overlay/circuits/xgress-options.ts'
import { SocketApplication } from '../../overlay/sockets/socket-application.ts'
import { withDialTimeout } from './dial-timeout.ts'
import { socketAddressPeerData, parseTarget } from '../../overlay/sockets/target.ts'
import type { TargetSocketLimiter } from '../../overlay/sockets/target-socket-limiter.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

export interface StreamDialerDeps {
  readonly circuits: LocalCircuits
  readonly sockets: TargetSocketLimiter
  readonly flow: XgressOptions
  /** Timeout for connecting to a target; 0: the timeout that the controller sends. */
  readonly connectTimeoutMs: number
  /** CA certificates for `tls:` targets. */
  readonly caPem: () => string
  /** Ports of this router's listeners that create a circuit for each connection. */
  readonly ownPorts: () => ReadonlySet<number>
}

/**
 * Dials `tcp:` and `tls:` targets. A `tls:` target must have a certificate of the network. The
 * router presents no client certificate: otherwise the client at the other end of the circuit could
 * act as the router.
 */
export class StreamDialer implements TerminatorDialer {
  readonly #deps: StreamDialerDeps
  #trust: { readonly caPem: string; readonly context: SecureContext } | null = null

  constructor(deps: StreamDialerDeps) {
    this.#deps = deps
  }

  async dial(
    { circuit, dialedBy, destination, timeoutMs }: DialRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Uint8Array>> {
    const { circuits, flow, connectTimeoutMs } = this.#deps
    const target = parseTarget(destination, ['tcp', 'tls'])
    const waitMs = connectTimeoutMs === 0 ? timeoutMs : Math.min(connectTimeoutMs, timeoutMs)
    const socket = await this.#connect(target, dialedBy, waitMs, signal)
    const addresses = socketAddressPeerData(socket)
    const application = new SocketApplication(socket)
    try {
      application.start(circuits.open({ ...circuit, options: flow }, application))
    } catch (error) {
      socket.destroy()
      throw error
    }
    return addresses
  }

  async #connect(
    target: Address,
    dialedBy: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Socket> {
    // @guard sockets-to-targets--streams
    const socket = this.#deps.sockets.open(dialedBy, () => this.#open(target))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // This listener is never removed, because an error event without a listener would end the
    // process.
    socket.on('error', reject)
    socket.once(target.protocol === 'tls' ? 'secureConnect' : 'connect', () => resolve())
    try {
      await withDialTimeout(promise, target.text, waitMs, signal)
      this.#refuseOwn(target, socket)
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  #open({ protocol, host, port }: Address): Socket {
    const options = { host, port, allowHalfOpen: true, noDelay: true }
    if (protocol === 'tcp') return connectTcp(options)
    return connectTls({
      ...options,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      secureContext: this.#context(),
      rejectUnauthorized: true,
    })
  }

  /**
   * Refuses a connection to a listener of this router, because each such connection would create
   * another circuit to the same target, without end.
   */
  #refuseOwn({ text }: Address, socket: Socket): void {
    const { localAddress, remoteAddress, remotePort = 0 } = socket
    // @guard circuits-without-end
    if (localAddress !== remoteAddress || !this.#deps.ownPorts().has(remotePort)) return
    throw new DialFailure(dialErrorCodes.portNotAllowed, `${text} is a listener of this router`)
  }

  #context(): SecureContext {
    const caPem = this.#deps.caPem()
    if (this.#trust?.caPem !== caPem) {
      this.#trust = { caPem, context: createSecureContext({ ca: caPem, minVersion: 'TLSv1.2' }) }
    }
    return this.#trust.context
  }
}

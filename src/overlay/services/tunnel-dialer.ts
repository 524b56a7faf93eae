import { formatHostPort } from '../../lib/text/names.ts'
import { targetDialFailure, dialTimeoutFailure } from '../sockets/dial-failures.ts'
import { socketAddressPeerData } from '../sockets/target.ts'
import type { TargetSocketLimiter } from '../sockets/target-socket-limiter.ts'
import {
  type CircuitApplication,
  type CircuitEndpoint,
  DialFailure,
  type DialRequest,
  type LocalCircuits,
  type TerminatorDialer,
} from '../circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../circuits/xgress-options.ts'
import { DatagramApplication } from '../sockets/datagram-application.ts'
import { SocketApplication } from '../sockets/socket-application.ts'
import { readAppData } from './app-data.ts'
import type { HostConfig } from './host-config.ts'
import { type HostTarget, resolveTarget, chooseHostTarget } from './host-target.ts'
import { type KeyPair, newKeyPair, SecureStream, deriveSessionKeys } from './secure-stream.ts'
import {
  connectDatagrams,
  connectStream,
  openProxyTunnel,
  type TargetSocketQuota,
  isResolvedByProxy,
} from './target-connection.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/** A terminator of the tunnel, as far as circuits need it. */
export interface DialedTerminator {
  readonly terms: HostConfig
  readonly isEncrypted: boolean
  /** Key pair for all circuits of the terminator; absent if each circuit has its own. */
  readonly keyPair?: KeyPair
  /**
   * Registers a new circuit, which closes when its service is no longer hosted.
   * @returns a function that removes the registration.
   */
  readonly hold: (end: Pick<CircuitEndpoint, 'abort'>) => () => void
}

interface TunnelDialerDeps {
  readonly circuits: Pick<LocalCircuits, 'open'>
  readonly sockets: TargetSocketLimiter
  readonly flow: XgressOptions
  /** The terminator with this ID; undefined if this tunnel does not host it. */
  readonly terminator: (id: string) => DialedTerminator | undefined
  /** Time without datagrams after which a circuit of datagrams ends. */
  readonly datagramsIdleMs: number
}

/** Connects circuits to the targets of hosted services; implements the binding `tunnel`. */
export class TunnelDialer implements TerminatorDialer {
  readonly #deps: TunnelDialerDeps

  constructor(deps: TunnelDialerDeps) {
    this.#deps = deps
  }

  async dial(request: DialRequest, signal: AbortSignal): Promise<ReadonlyMap<number, Uint8Array>> {
    const { destination, peerData, timeoutMs } = request
    const terminator = this.#deps.terminator(destination)
    if (terminator === undefined) {
      throw new DialFailure(dialErrorCodes.invalidTerminator, 'this tunnel does not host it')
    }
    const peerPublicKey = peerData.get(peerDataKey.publicKey)
    // @guard circuits-of-a-tunnel--encrypted
    if (terminator.isEncrypted && peerPublicKey === undefined) {
      throw new DialFailure(dialErrorCodes.rejected, 'the service requires encryption')
    }
    const { terms } = terminator
    const target = chooseHostTarget(terms, readAppData(peerData.get(peerDataKey.appData)))
    const waitMs = Math.min(terms.connectTimeoutMs, timeoutMs)
    const ends = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
    const place = formatHostPort({ host: target.host, port: target.port })
    try {
      return target.protocol === 'tcp'
        ? await this.#stream(request, terminator, target, ends)
        : await this.#datagrams(request, terminator, target, ends)
    } catch (error) {
      if (ends.aborted && !signal.aborted) throw dialTimeoutFailure(place, waitMs)
      throw targetDialFailure(place, error)
    }
  }

  async #stream(
    request: DialRequest,
    terminator: DialedTerminator,
    target: HostTarget,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Uint8Array>> {
    const { proxy } = terminator.terms
    const { port } = target
    const isLeftToProxy = isResolvedByProxy(terminator.terms, target.isReachable)
    const host = isLeftToProxy ? target.host : await resolveTarget(target)
    const socket = await connectStream(proxy ?? { host, port }, signal, this.#counted(request))
    const first = proxy === null ? undefined : await openProxyTunnel(socket, { host, port }, signal)
    const application = new SocketApplication(socket, first)
    return this.#opened(request, terminator, socketAddressPeerData(socket), {
      application,
      start: (end) => application.start(end),
      release: () => socket.destroy(),
    })
  }

  async #datagrams(
    request: DialRequest,
    terminator: DialedTerminator,
    target: HostTarget,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Uint8Array>> {
    if (terminator.terms.proxy !== null) {
      throw new DialFailure(dialErrorCodes.misconfiguredTerminator, 'a proxy connects to TCP alone')
    }
    const host = await resolveTarget(target)
    const socket = await connectDatagrams(
      { host, port: target.port },
      signal,
      this.#counted(request),
    )
    const application = new DatagramApplication({
      idleMs: this.#deps.datagramsIdleMs,
      transmit: (body, onSent) => socket.send(body, () => onSent()),
      onClosed: () => socket.close(),
    })
    socket.on('error', (error) => application.fail(error.message))
    socket.on('message', (body) => application.onDatagram(body))
    const [local, remote] = [socket.address(), socket.remoteAddress()]
    const addresses = socketAddressPeerData({
      localAddress: local.address,
      localPort: local.port,
      remoteAddress: remote.address,
      remotePort: remote.port,
    })
    return this.#opened(request, terminator, addresses, {
      application,
      start: (end) => application.start(end),
      release: () => application.onClosed(),
    })
  }

  #counted({ dialedBy }: DialRequest): TargetSocketQuota {
    return { sockets: this.#deps.sockets, dialedBy }
  }

  /**
   * Opens a circuit endpoint that closes when its service is no longer hosted, with encryption if
   * the client sent a key.
   */
  #opened(
    request: DialRequest,
    terminator: DialedTerminator,
    addresses: ReadonlyMap<number, Uint8Array>,
    local: {
      readonly application: CircuitApplication
      readonly start: (end: CircuitEndpoint) => void
      readonly release: () => void
    },
  ): ReadonlyMap<number, Uint8Array> {
    try {
      const { destination } = request
      if (this.#deps.terminator(destination) !== terminator) {
        throw new DialFailure(dialErrorCodes.invalidTerminator, 'it is hosted no more')
      }
      const answer = new Map(addresses)
      const peerPublicKey = request.peerData.get(peerDataKey.publicKey)
      let inner = local.application
      let secure: SecureStream | null = null
      if (peerPublicKey !== undefined) {
        const own = terminator.keyPair ?? newKeyPair()
        secure = new SecureStream(inner, deriveSessionKeys('server', own, peerPublicKey))
        answer.set(peerDataKey.publicKey, own.publicKey)
        inner = secure
      }
      const held = new HeldApplication(inner)
      const end = this.#deps.circuits.open({ ...request.circuit, options: this.#deps.flow }, held)
      held.onLeft = terminator.hold(end)
      secure?.start(end)
      local.start(secure ?? end)
      return answer
    } catch (error) {
      local.release()
      throw error
    }
  }
}

/** Removes the registration of a circuit when its endpoint closes. */
class HeldApplication implements CircuitApplication {
  readonly #inner: CircuitApplication
  onLeft: () => void = () => undefined

  constructor(inner: CircuitApplication) {
    this.#inner = inner
  }

  deliver(piece: Parameters<CircuitApplication['deliver']>[0]): boolean {
    return this.#inner.deliver(piece)
  }

  onFinished(): void {
    this.#inner.onFinished()
  }

  onWritable(): void {
    this.#inner.onWritable()
  }

  onClosed(reason: string, isWhole: boolean): void {
    this.onLeft()
    this.#inner.onClosed(reason, isWhole)
  }
}

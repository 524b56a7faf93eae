import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'

import { KeyedCounts } from '../../lib/bounds/keyed-counts.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import { bindDatagrams } from './bind-datagrams.ts'
import { socketLimits } from './limits.ts'
import { DatagramApplication } from './datagram-application.ts'
import { type ClientRequest, connectionResponseLine, readClientRequest } from './request-line.ts'
import type { ChosenService, ListenerDeps } from './stream-listener.ts'
import { listenFailure } from './bind-server.ts'

const {
  datagramPeersMax,
  datagramPeersPerSourceMax,
  datagramPeerRefusedMs,
  datagramsWaitingMax,
  datagramsWaitingBytesMax,
  datagramsWaitingBytesOfAllMax,
} = socketLimits

export interface DatagramListenerDeps extends ListenerDeps {
  /** Time without datagrams after which a peer is forgotten and its circuit ends. */
  readonly idleMs: number
}

/** A UDP peer: an address and port from which datagrams arrive. */
interface Peer {
  readonly key: string
  readonly from: RemoteInfo
  /** null while the circuit is being requested, and after the request has failed. */
  application: DatagramApplication | null
  isRefused: boolean
  readonly waiting: Uint8Array[]
  waitingBytes: number
}

/**
 * A listening UDP port on which each peer (address and port) gets a circuit: for the bindings
 * `transport_udp` and `proxy_udp`, and for tunnels.
 */
export class DatagramListener {
  readonly #deps: DatagramListenerDeps
  readonly #socket: Socket
  readonly #peers = new Map<string, Peer>()
  readonly #sources = new KeyedCounts()
  #waitingBytes = 0
  #isClosed = false

  constructor(deps: DatagramListenerDeps) {
    this.#deps = deps
    this.#socket = createSocket(isIPv6(deps.bind.host) ? 'udp6' : 'udp4')
    this.#socket.on('message', (body, from) => this.#onDatagram(body, from))
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** @throws {ProgramFailure} when it cannot listen. */
  async listen(): Promise<void> {
    const { bind, place } = this.#deps
    try {
      await bindDatagrams(this.#socket, bind)
    } catch (error) {
      this.#isClosed = true
      throw listenFailure(`${place}.bind`, bind, error)
    }
    this.#socket.on('error', (error) => this.#warn('listener failed', { err: error }))
  }

  /** Closes the port and ends all its circuits. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const { application } of this.#peers.values()) application?.fail('the router stops')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#socket.close(() => resolve())
    await promise
  }

  #warn(failure: string, fields: Readonly<Record<string, unknown>>): void {
    this.#deps.failures.warn(this.#deps.place, failure, fields)
  }

  #onDatagram(body: Uint8Array, from: RemoteInfo): void {
    const key = formatHostPort({ host: from.address, port: from.port })
    const peer = this.#peers.get(key)
    if (peer === undefined) this.#admit(key, body, from)
    else if (peer.application !== null) peer.application.onDatagram(body)
    else if (!peer.isRefused) this.#wait(peer, body)
  }

  #admit(key: string, body: Uint8Array, from: RemoteInfo): void {
    const source = sourceNetwork(from.address)
    const isFull =
      this.#peers.size >= datagramPeersMax || this.#sources.of(source) >= datagramPeersPerSourceMax
    if (isFull) {
      this.#warn('too many peers', { address: key })
      return
    }
    const { choose, bind } = this.#deps
    const chosen =
      choose === undefined
        ? this.#deps
        : choose({
            localAddress: bind.host,
            localPort: bind.port,
            remoteAddress: from.address,
            remotePort: from.port,
          })
    if (chosen === null) return
    const peer = {
      key,
      from,
      application: null,
      isRefused: false,
      waiting: [],
      waitingBytes: 0,
    }
    this.#peers.set(key, peer)
    this.#sources.add(source, 1)
    const { service } = chosen
    if (service === null) void this.#serve(peer, readClientRequest(body), chosen)
    else {
      this.#wait(peer, body)
      void this.#serve(peer, { service, client: '' }, chosen)
    }
  }

  #wait(peer: Peer, body: Uint8Array): void {
    const isFull =
      peer.waiting.length >= datagramsWaitingMax ||
      peer.waitingBytes + body.length > datagramsWaitingBytesMax ||
      this.#waitingBytes + body.length > datagramsWaitingBytesOfAllMax
    if (isFull) return
    peer.waiting.push(body)
    peer.waitingBytes += body.length
    this.#waitingBytes += body.length
  }

  #takeWaiting(peer: Peer): readonly Uint8Array[] {
    this.#waitingBytes -= peer.waitingBytes
    peer.waitingBytes = 0
    return peer.waiting.splice(0)
  }

  async #serve(
    peer: Peer,
    request: ClientRequest | null,
    { service, circuits, circuitTimeoutMs, circuitData }: ChosenService,
  ): Promise<void> {
    const { requests, flow, idleMs } = this.#deps
    try {
      if (request === null) throw new Error('the first datagram is no request')
      const { service: asked, client } = request
      const circuit = await requests.request(asked, client, circuitTimeoutMs, circuitData?.())
      if (service === null)
        this.#send(peer, connectionResponseLine(circuit.id, ''), () => undefined)
      const application = new DatagramApplication({
        idleMs,
        transmit: (body, onSent) => this.#send(peer, body, onSent),
        onClosed: () => this.#forget(peer),
      })
      application.start(circuits.open({ ...circuit, options: flow }, application))
      peer.application = application
      for (const body of this.#takeWaiting(peer)) application.onDatagram(body)
      if (this.#isClosed) application.fail('the router stops')
    } catch (error) {
      const reason = errorMessage(error)
      this.#warn('no circuit for a client', { address: peer.key, reason })
      if (service === null) this.#send(peer, connectionResponseLine('', reason), () => undefined)
      this.#takeWaiting(peer)
      peer.isRefused = true
      setTimeout(() => this.#forget(peer), datagramPeerRefusedMs).unref()
    }
  }

  #send({ from }: Peer, body: Uint8Array, onSent: () => void): void {
    if (this.#isClosed) onSent()
    else this.#socket.send(body, from.port, from.address, () => onSent())
  }

  #forget({ key, from }: Peer): void {
    if (this.#peers.delete(key)) this.#sources.add(sourceNetwork(from.address), -1)
  }
}

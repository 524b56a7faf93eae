import type { TLSSocket } from 'node:tls'

import { Channel } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { encodeFlag, encodeBitMask, encodeText } from '../../channel/headers.ts'
import {
  type HelloRejectClass,
  helloAcceptedMessage,
  helloRefusedMessage,
  readHello,
  formatVersionLine,
  type VersionLine,
} from '../../channel/hello.ts'
import { channelLimits } from '../../channel/limits.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import type { WebSocketTimeouts } from '../../config/router/table-transport.ts'
import type { Address } from '../../config/router/values.ts'
import { limitConnections } from '../../lib/bounds/connections.ts'
import { KeyedCounts } from '../../lib/bounds/keyed-counts.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import type { XgressOptions } from '../../overlay/circuits/xgress-options.ts'
import { TlsListener } from '../../overlay/sockets/tls-listener.ts'
import {
  type ClientSocketAddresses,
  clientSocketAddresses,
} from '../../overlay/sockets/stream-listener.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { edgeLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ApiSessions } from './api-sessions.ts'
import { type EdgeAdmission, admitClient, isStillAdmitted } from './client-admission.ts'
import { ClientChannel, type ClientRequestHandlers } from './client-channel.ts'
import { ClientFlowControl } from './client-flow-control.ts'
import {
  capabilitiesForClients,
  EDGE_PROTOCOL,
  edgeHeaderKey,
  edgeContentType,
} from '../../channel/messages/edge.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import { circuitDataTypes } from '../../channel/messages/payload.ts'
import { WEB_SOCKET_PROTOCOL, WebSocketAcceptor } from './web-socket-acceptor.ts'

export interface EdgeListenerDeps {
  readonly ports: TlsPortOpener
  readonly identity: () => RouterIdentity
  readonly version: VersionLine
  readonly clock: Clock
  readonly log: ProgramLogger
  readonly sessions: ApiSessions
  readonly services: ClientRequestHandlers
  readonly trustDomain: () => string | null
  readonly handshakeTimeoutMs: number
  /** Timeouts if the listener accepts web sockets; null if clients connect by TLS directly. */
  readonly webSockets: WebSocketTimeouts | null
  /** Maximum time from the end of the TLS handshake to the end of the hello. */
  readonly helloTimeoutMs: number
  readonly lookupTimeoutMs: number
  /** Maximum time for sending one message to a client; null: no limit. */
  readonly writeTimeoutMs: number | null
  readonly options: XgressOptions
  /** @returns why the identity may not open a further channel; null if it may. */
  readonly faultOfRoom: (identityId: string) => string | null
  readonly onOpen: (client: ClientChannel) => void
  readonly onClosed: (client: ClientChannel, reason: string) => void
}

/** A connection whose client is not admitted yet. */
interface Arrival {
  readonly channel: Channel
  readonly flow: ClientFlowControl
  readonly socket: TLSSocket
  readonly ends: ClientSocketAddresses
}

/**
 * Data messages have no rate limit, because circuits have flow control. Clients do not answer
 * heartbeats, so TCP keep-alive detects a client that has disappeared.
 */
const clientChannelLimits = {
  ...channelLimits,
  heartbeatEveryMs: Infinity,
  silentMsMax: Infinity,
  firstSilentMsMax: Infinity,
  unmeteredTypes: new Set([...circuitDataTypes, edgeContentType.data]),
}

/** The listener for clients, which connect by TLS, or by TLS within a web socket. */
export class EdgeListener {
  readonly #deps: EdgeListenerDeps
  readonly #listener: TlsListener
  /** Null if clients connect to `#listener` directly. */
  readonly #webSockets: WebSocketAcceptor | null
  /** Number of connections whose client is not admitted yet, by source network. */
  readonly #waiting = new KeyedCounts()
  #waitingCount = 0

  constructor(deps: EdgeListenerDeps) {
    this.#deps = deps
    const { webSockets: timeouts } = deps
    this.#listener = new TlsListener({
      ...deps,
      protocol: EDGE_PROTOCOL,
      // The Go SDK requests no application protocol (ALPN) for a web socket. A web socket listener
      // receives such clients only if no other listener on the port accepts clients without ALPN.
      clientsWithout: timeouts === null ? 'all' : 'rest',
      // TLS accepts any CA, because an identity may have a certificate of a third-party CA; the
      // router verifies the certificate by its fingerprint or SPIFFE ID.
      rejectUnauthorized: false,
      handshakeTimeoutMs: timeouts?.handshakeTimeout ?? deps.handshakeTimeoutMs,
      use: 'listeners: binding edge',
    })
    const { server } = this.#listener
    const bounds = {
      connectionsMax: edgeLimits.clientConnectionsOpenMax,
      connectionsPerSourceMax: edgeLimits.clientConnectionsPerSourceMax,
      handshakeTimeoutMs: deps.handshakeTimeoutMs,
      handshakesMax: edgeLimits.clientsWaitingMax,
      handshakesPerSourceMax: edgeLimits.clientsWaitingPerSourceMax,
    }
    if (timeouts === null) {
      this.#webSockets = null
      limitConnections(server, bounds)
      server.on('secureConnection', (socket) => {
        socket.setKeepAlive(true, edgeLimits.clientKeepAliveMs)
        this.#accept(socket, clientSocketAddresses(socket))
      })
    } else {
      this.#webSockets = new WebSocketAcceptor({
        ...deps,
        timeouts,
        bounds,
        credentials: () => this.#listener.credentials(),
        inner: server,
        onSecure: (socket, ends, onAdmitted) => this.#accept(socket, ends, onAdmitted),
      })
    }
  }

  /**
   * The port on which the listener listens; if 0 was configured, the port that the system chose.
   */
  get port(): number {
    return this.#listener.port
  }

  /** @throws {ProgramFailure} when it cannot listen. */
  async listen(bind: Address, place: string): Promise<void> {
    const outer = this.#webSockets
    await this.#listener.listen(
      bind,
      place,
      outer === null ? undefined : { server: outer.server, protocol: WEB_SOCKET_PROTOCOL },
    )
  }

  /** Makes new connections use the current server certificate. */
  renew(): void {
    this.#listener.renew()
    this.#webSockets?.renew()
  }

  async close(): Promise<void> {
    this.#webSockets?.closeWaiting()
    await this.#listener.close()
  }

  #accept(socket: TLSSocket, ends: ClientSocketAddresses, onAdmitted?: () => void): void {
    const { clock, helloTimeoutMs, log, writeTimeoutMs } = this.#deps
    const wait = this.#wait(ends)
    if (wait === null) {
      socket.destroy()
      return
    }
    let client: ClientChannel | null = null
    const closing = new AbortController()
    const deadline = setTimeout(() => channel.close('no hello in time'), helloTimeoutMs)
    const channel: Channel = new Channel({
      socket,
      clock,
      limits:
        writeTimeoutMs === null
          ? clientChannelLimits
          : { ...clientChannelLimits, writeMsMax: writeTimeoutMs },
      onHello: (message) => {
        clearTimeout(deadline)
        void this.#admit({ channel, flow, socket, ends }, message, closing.signal).then(
          (admitted) => {
            wait.end()
            client = admitted
            if (admitted !== null) onAdmitted?.()
          },
        )
      },
      onMessage: (message) => {
        try {
          client?.receive(message)
        } catch (error) {
          log.warn({ contentType: message.contentType, err: error }, 'message of a client failed')
          channel.close('a message failed')
        }
        return null
      },
      onClose: (reason) => {
        clearTimeout(deadline)
        // @guard clients-that-leave--close
        closing.abort()
        wait.end()
        this.#listener.channels.delete(channel)
        if (client !== null) this.#onClosed(client, reason)
      },
    })
    const flow = new ClientFlowControl(channel)
    this.#listener.channels.add(channel)
  }

  #onClosed(client: ClientChannel, reason: string): void {
    client.onClosed(reason)
    this.#deps.onClosed(client, reason)
  }

  /**
   * Counts a connection whose client is not admitted yet.
   * @returns null if there are too many.
   */
  #wait({ remoteAddress }: ClientSocketAddresses): { end: () => void } | null {
    const source = sourceNetwork(remoteAddress)
    const isFull =
      this.#waitingCount >= edgeLimits.clientsWaitingMax ||
      this.#waiting.of(source) >= edgeLimits.clientsWaitingPerSourceMax
    if (isFull) return null
    this.#waitingCount += 1
    this.#waiting.add(source, 1)
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      this.#waitingCount -= 1
      this.#waiting.add(source, -1)
    }
    return { end }
  }

  async #admit(
    { channel, flow, socket, ends }: Arrival,
    message: ChannelMessage,
    closeSignal: AbortSignal,
  ): Promise<ClientChannel | null> {
    const { sessions, services, clock, identity, version } = this.#deps
    const hello = readHello(message)
    const admission = hello === null ? noHello : await this.#judged(socket, message, closeSignal)
    if (channel.isClosed) return null
    if (hello === null || !admission.ok) {
      this.#refuse(channel, ends, admission.ok ? '' : admission.reason)
      return null
    }
    const { client } = admission
    const { session } = client
    // Checks the session again, because it may have ended or changed during the admission.
    const fault = isStillAdmitted(client, sessions.find(session.token))
      ? this.#deps.faultOfRoom(session.identityId)
      : 'the API session has ended'
    if (fault !== null) {
      this.#refuse(channel, ends, fault, 'busy')
      return null
    }
    const admitted = new ClientChannel({
      channel,
      flow,
      client,
      closeSignal,
      services,
      options: this.#deps.options,
      localAddress: formatHostPort({ host: ends.localAddress, port: ends.localPort }),
      remoteAddress: formatHostPort({ host: ends.remoteAddress, port: ends.remotePort }),
      connectedAtMs: clock.nowMs(),
    })
    // The answer contains no group, so the client uses a single socket for the channel.
    const answer = helloAcceptedMessage(
      { ...hello, group: null },
      identity().id,
      new Map<number, Uint8Array>([
        [channelHeaderKey.helloVersion, encodeText(formatVersionLine(version))],
        [edgeHeaderKey.supportsBindSuccess, encodeFlag(true)],
        [edgeHeaderKey.supportsPostureChecks, encodeFlag(true)],
        [edgeHeaderKey.routerCapabilities, encodeBitMask(capabilitiesForClients)],
      ]),
    )
    this.#deps.onOpen(admitted)
    channel.open(answer)
    return admitted
  }

  async #judged(
    socket: TLSSocket,
    message: ChannelMessage,
    signal: AbortSignal,
  ): Promise<EdgeAdmission> {
    const { sessions, lookupTimeoutMs, trustDomain } = this.#deps
    try {
      return await admitClient(socket, message, {
        sessions,
        lookupTimeoutMs,
        signal,
        trustDomain,
      })
    } catch (error) {
      return { ok: false, reason: errorMessage(error) }
    }
  }

  #refuse(
    channel: Channel,
    { remoteAddress: address }: ClientSocketAddresses,
    reason: string,
    rejectClass: HelloRejectClass = 'notPermitted',
  ): void {
    this.#deps.log.warn({ address, reason }, 'client refused')
    channel.close(reason, helloRefusedMessage(reason, rejectClass))
  }
}

const noHello: EdgeAdmission = { ok: false, reason: 'the first message is no hello' }

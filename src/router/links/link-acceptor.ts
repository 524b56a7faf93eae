import { timingSafeEqual } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

import { Channel } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { helloAcceptedMessage, helloRefusedMessage } from '../../channel/hello.ts'
import type { ChannelLimits } from '../../channel/limits.ts'
import {
  limitConnections,
  socketEndpoint,
  PendingConnections,
} from '../../lib/bounds/connections.ts'
import type { Clock } from '../../lib/clock.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import { leafRouterId, parseCertificate } from '../../pki/certificate.ts'
import type { Address } from '../../config/router/values.ts'
import { TlsListener } from '../../overlay/sockets/tls-listener.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { linkLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import {
  readLinkGroup,
  LINK_PROTOCOL,
  type LinkHello,
  type LinkSocketType,
  linkSocketTypes,
  readLinkHello,
} from '../../channel/messages/links.ts'
import { type LinkRegistry, type LinkTrafficHandler } from './link-registry.ts'
import { Link, type LinkQueueLimits } from './link.ts'
import { peerLeafDer, peerLeafSha256 } from '../../lib/runtime/peer-certificates.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'

interface LinkAcceptorDeps {
  readonly ports: TlsPortOpener
  readonly identity: () => RouterIdentity
  readonly registry: LinkRegistry
  readonly user: LinkTrafficHandler
  readonly clock: Clock
  readonly limits: ChannelLimits
  readonly queues: LinkQueueLimits
  readonly handshakeTimeoutMs: number
  /** Maximum time from the end of the TLS handshake to the hello. */
  readonly helloTimeoutMs: number
  readonly log: ProgramLogger
  /** Whether a controller confirms that the certificate (SHA-1, hex) belongs to the router. */
  readonly isVerified: (routerId: string, sha1: string) => Promise<boolean>
}

/**
 * A listener for links from other routers. The certificate identifies the dialing router: a
 * controller must confirm it, and the router ID in the hello must match it.
 */
export class LinkAcceptor {
  readonly #deps: LinkAcceptorDeps
  readonly #listener: TlsListener
  /**
   * Connections that are not admitted yet, by certificate: several routers may share an address.
   */
  readonly #waiting: PendingConnections

  constructor(deps: LinkAcceptorDeps) {
    this.#deps = deps
    this.#waiting = new PendingConnections({
      handshakeTimeoutMs: deps.helloTimeoutMs + linkLimits.linkAdmissionMsMax,
      handshakesMax: linkLimits.linksWaitingMax,
      // @guard link-listener-kept-busy--certificate
      handshakesPerSourceMax: linkLimits.linksWaitingPerCertificateMax,
    })
    this.#listener = new TlsListener({
      ...deps,
      protocol: LINK_PROTOCOL,
      // On a shared port, this listener receives no clients without an application protocol (ALPN).
      // If it is alone on its port, it accepts them, as OpenZiti does.
      clientsWithout: 'none',
      // @guard protocols-of-one-port--authority
      rejectUnauthorized: true,
      use: 'link.listeners:',
    })
    const { server } = this.#listener
    limitConnections(server, {
      connectionsMax: linkLimits.linkConnectionsMax,
      connectionsPerSourceMax: linkLimits.linkConnectionsPerSourceMax,
      handshakeTimeoutMs: deps.handshakeTimeoutMs,
      // @guard link-listener-kept-busy--all
      handshakesMax: linkLimits.linkHandshakesMax,
      // @guard link-listener-kept-busy--source
      handshakesPerSourceMax: linkLimits.linkHandshakesPerSourceMax,
    })
    server.on('secureConnection', (socket) => this.#accept(socket))
  }

  /** @throws {ProgramFailure} when it cannot listen. */
  async listen(bind: Address, place: string): Promise<void> {
    await this.#listener.listen(bind, place)
  }

  /** Makes new links use the current certificates. */
  renew(): void {
    this.#listener.renew()
  }

  async close(): Promise<void> {
    await this.#listener.close()
  }

  #accept(socket: TLSSocket): void {
    const { limits, clock, log, helloTimeoutMs } = this.#deps
    let link: Link | null = null
    let deadline = setTimeout(() => {
      const reason = 'no hello in time'
      log.warn({ address: socket.remoteAddress ?? '', reason }, 'link refused')
      channel.close(reason)
    }, helloTimeoutMs)
    const endpoint = socketEndpoint(socket)
    const certificate = peerLeafSha256(socket)
    this.#waiting.begin(endpoint, certificate, socket)
    const channel: Channel = new Channel({
      socket,
      limits,
      clock,
      onHello: (message) => {
        clearTimeout(deadline)
        deadline = setTimeout(
          () => channel.close('not admitted in time'),
          linkLimits.linkAdmissionMsMax,
        )
        void this.#admit(channel, socket, message).then((admitted) => {
          clearTimeout(deadline)
          this.#waiting.end(endpoint)
          link = admitted
          // If the channel closed before the router was identified, `onClose` did not know the
          // link, so its end is handled here.
          if (admitted !== null && channel.isClosed)
            this.#onClosed(admitted, channel, 'closed at once')
        })
      },
      onMessage: (message) => {
        if (link !== null) this.#deps.user.onLinkMessage(link, message)
        return null
      },
      onClose: (reason) => {
        clearTimeout(deadline)
        this.#waiting.end(endpoint)
        this.#listener.channels.delete(channel)
        if (link !== null) this.#onClosed(link, channel, reason)
      },
    })
    this.#listener.channels.add(channel)
  }

  /** Handles a closed socket. The link ends if this was its first socket. */
  #onClosed(link: Link, channel: Channel, reason: string): void {
    if (link.channel === channel) this.#deps.registry.remove(link, reason)
    else link.removeSocket(channel)
  }

  async #admit(channel: Channel, socket: TLSSocket, message: ChannelMessage): Promise<Link | null> {
    const hello = readLinkHello(message)
    const fault = hello === null ? 'the first message is no hello of a link' : null
    const isFurther = hello !== null && hello.group !== null && !hello.group.isFirst
    // Refuses a socket without the secret of the link before it asks a controller about the
    // certificate.
    const groupFault = isFurther ? this.#joined(hello).fault : null
    // @guard sockets-of-another-link--certificate
    const reason = fault ?? groupFault ?? (hello === null ? '' : await this.#refusal(socket, hello))
    if (hello === null || reason !== null) {
      return this.#refuse(channel, socket, hello, reason ?? '')
    }
    if (channel.isClosed) return null
    return isFurther
      ? this.#join(channel, socket, message, hello)
      : this.#add(channel, socket, message, hello)
  }

  #refuse(channel: Channel, socket: TLSSocket, hello: LinkHello | null, reason: string): null {
    const shown = { routerId: hello?.routerId, address: socket.remoteAddress ?? '', reason }
    this.#deps.log.warn(shown, 'link refused')
    channel.close(reason, helloRefusedMessage(reason, 'notPermitted'))
    return null
  }

  #answer(hello: LinkHello, { headers }: ChannelMessage): ChannelMessage {
    const { linkId: token, group, type } = hello
    const said = { token, version: null, type: group === null ? '' : type, group, headers }
    return helloAcceptedMessage(said, this.#deps.identity().id, new Map())
  }

  #add(
    channel: Channel,
    socket: TLSSocket,
    message: ChannelMessage,
    hello: LinkHello,
  ): Link | null {
    const { registry, log, queues } = this.#deps
    const refusal = registry.refusalOf({ id: hello.linkId, peerId: hello.routerId })
    if (refusal !== null) {
      log.info({ routerId: hello.routerId, linkId: hello.linkId, reason: refusal }, 'link refused')
      // Refuses the hello, because the peer waits after a refused hello. If the link were accepted
      // and then closed, the peer would dial again immediately.
      channel.close(refusal, helloRefusedMessage(refusal, 'busy'))
      return null
    }
    const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket
    const answer = this.#answer(hello, message)
    const link = new Link({
      id: hello.linkId,
      peerId: hello.routerId,
      iteration: hello.iteration,
      isDialed: false,
      dialAddress: '',
      localAddress: formatHostPort({ host: localAddress, port: localPort }),
      remoteAddress: formatHostPort({ host: remoteAddress, port: remotePort }),
      channel,
      queues,
      group: readLinkGroup(answer.headers),
    })
    channel.open(answer)
    registry.add(link)
    return link
  }

  /** Adds a socket to an existing link of the same router. */
  #join(
    channel: Channel,
    socket: TLSSocket,
    message: ChannelMessage,
    hello: LinkHello,
  ): Link | null {
    // Looks up the link again, because it may have ended or received other sockets while a
    // controller confirmed the certificate.
    const { link, type, fault } = this.#joined(hello)
    if (link === null || fault !== null) return this.#refuse(channel, socket, hello, fault ?? '')
    link.addSocket(channel, type)
    channel.open(this.#answer(hello, message), link.channel)
    return link
  }

  /**
   * The link that an additional socket joins, or why it may not join. The link must belong to the
   * same router, the socket must present the secret that the link's first socket received, and the
   * link must have fewer sockets than the limit. The caller must still verify the certificate.
   */
  #joined({ group, type, routerId }: LinkHello): {
    readonly link: Link | null
    readonly type: LinkSocketType
    readonly fault: string | null
  } {
    const link = this.#deps.registry.acceptedFrom(routerId) ?? null
    const known = linkSocketTypes.find((one) => one === type)
    const isMember = link !== null && link.group !== null && link.group.id === group?.id
    const knowsSecret = isSame(link?.group?.secret ?? null, group?.secret ?? null)
    const isFull = (link?.socketCount ?? 0) >= linkLimits.linkSocketsMax
    let fault: string | null = null
    // @guard sockets-of-another-link--bound, sockets-of-another-link--secret
    if (!isMember) fault = 'the router has no link of this group'
    else if (!knowsSecret) fault = 'the secret of the group is another'
    else if (known === undefined) fault = 'a link has no sockets of this type'
    else if (isFull) fault = 'the link has too many sockets'
    return { link, type: known ?? 'link.default', fault }
  }

  /** Why the link is refused; null if it is accepted. */
  async #refusal(
    socket: TLSSocket,
    { routerId, dialedId }: { readonly routerId: string; readonly dialedId: string | null },
  ): Promise<string | null> {
    const { identity, isVerified } = this.#deps
    const shown = peerLeafDer(socket)
    if (shown === null) return 'no certificate was presented'
    const leaf = parseCertificate(shown)
    const self = identity().id
    // @guard link-of-another-router--certificate
    if (leafRouterId(leaf) !== routerId) return 'the certificate belongs to another router'
    if (dialedId !== null && dialedId !== self) return 'another router was dialed'
    if (routerId === self) return 'a router has no link to itself'
    // @guard link-of-another-router--verified
    if (await isVerified(routerId, leaf.sha1)) return null
    return 'no controller knows the certificate as that of the router'
  }
}

function isSame(secret: Uint8Array | null, shown: Uint8Array | null): boolean {
  if (secret === null || shown === null || secret.length !== shown.length) return false
  return timingSafeEqual(secret, shown)
}

import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'

import type { Channel } from '../../channel/channel.ts'
import { type DialedChannel, dialChannel } from '../../channel/dial.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import type { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import { parseAddress } from '../../config/router/values.ts'
import type { Clock } from '../../lib/clock.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { leafRouterId, parseCertificate } from '../../pki/certificate.ts'
import { resolveLocalAddress } from '../controllers/dial-controller.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { AdditionalLinkSockets } from './additional-link-sockets.ts'
import {
  readLinkGroup,
  LINK_PROTOCOL,
  type LinkGroup,
  linkHelloMessage,
  type LinkSocketType,
} from '../../channel/messages/links.ts'
import { linkChannelLimits, linkQueueLimits, linkSocketCount } from './link-options.ts'
import type { LinkRegistry, LinkTrafficHandler } from './link-registry.ts'
import { Link } from './link.ts'
import type { DialedPeer, LinkTarget } from './peer-dialer.ts'

type LinkConfig = NonNullable<RouterConfig['link']>

interface LinkDialerDeps {
  /** Proxy for outgoing connections; null: no proxy. */
  readonly proxy: HttpProxy | null
  readonly names?: CachedResolver
  readonly section: LinkConfig
  readonly config: LinkConfig['dialers'][number]
  readonly identity: () => RouterIdentity
  readonly registry: LinkRegistry
  readonly user: LinkTrafficHandler
  readonly clock: Clock
  readonly log: ProgramLogger
}

/** How to dial one socket of a link. */
interface SocketDial {
  readonly group: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType } | undefined
  /** The link to which the socket belongs; null until it exists. */
  readonly link: () => Link | null
  readonly onClose: (channel: Channel, reason: string) => void
  readonly partOf?: Channel
  readonly signal: AbortSignal
}

/**
 * Dials links with the options of one configured dialer, and the additional sockets of those links.
 */
export class LinkDialer {
  readonly #deps: LinkDialerDeps

  constructor(deps: LinkDialerDeps) {
    this.#deps = deps
  }

  /** @throws {Error} whose message is a clause to be used within a sentence. */
  async dial(peer: DialedPeer, target: LinkTarget, signal: AbortSignal): Promise<Link> {
    const { config, section, registry } = this.#deps
    const sockets = linkSocketCount(config)
    const hasSeveral = sockets['link.default'] + sockets['link.ack'] > 1
    let link: Link | null = null
    let further: AdditionalLinkSockets | null = null
    const { channel, answer, local, remote } = await this.#dialSocket(peer, target, {
      group: hasSeveral ? 'first' : undefined,
      link: () => link,
      onClose: (_, reason) => {
        further?.stop()
        if (link !== null) registry.remove(link, reason)
      },
      signal,
    })
    // A peer whose answer contains no group supports only one socket for each link.
    const group = hasSeveral ? readLinkGroup(answer.headers) : null
    const made = new Link({
      id: target.linkId,
      peerId: peer.id,
      iteration: target.iteration,
      isDialed: true,
      dialAddress: target.address,
      localAddress: local,
      remoteAddress: remote,
      channel,
      queues: linkQueueLimits(section, config.options),
      group,
    })
    link = made
    const refusal = registry.add(made)
    if (refusal !== null) channel.close(refusal)
    else if (channel.isClosed) registry.remove(made, 'closed at once')
    else if (group !== null) further = this.#furtherSockets(made, group, peer, target)
    return made
  }

  #furtherSockets(
    link: Link,
    group: LinkGroup,
    peer: DialedPeer,
    target: LinkTarget,
  ): AdditionalLinkSockets {
    const { config, log } = this.#deps
    return new AdditionalLinkSockets({
      link,
      wanted: linkSocketCount(config),
      startupDelayMs: config.startupDelay,
      log,
      dial: async (type, signal) => {
        const { channel } = await this.#dialSocket(peer, target, {
          group: { of: group, type },
          link: () => link,
          onClose: (closed) => link.removeSocket(closed),
          partOf: link.channel,
          signal,
        })
        if (link.channel.isClosed) channel.close('the link is closed')
        else if (!channel.isClosed) link.addSocket(channel, type)
      },
    })
  }

  async #dialSocket(
    peer: DialedPeer,
    target: LinkTarget,
    { group, link, onClose, partOf, signal }: SocketDial,
  ): Promise<DialedChannel & { readonly local: string; readonly remote: string }> {
    const { section, config, clock, user } = this.#deps
    const address = parseAddress(target.address)
    if (address === null) throw new Error('it is no address')
    const identity = this.#deps.identity()
    const { host, port } = address
    const localAddress = resolveLocalAddress(config.bind, isIP(host) === 6 ? 6 : 4)
    let local = ''
    let dialed: DialedChannel | null = null
    dialed = await dialChannel({
      host,
      port,
      tls: { ca: identity.caPem, cert: identity.certificatePem, key: identity.privateKeyPem },
      ...(localAddress === null ? {} : { localAddress }),
      proxy: this.#deps.proxy,
      ...(this.#deps.names === undefined ? {} : { names: this.#deps.names }),
      protocol: LINK_PROTOCOL,
      judge: (socket) => {
        local = formatHostPort({ host: socket.localAddress ?? '', port: socket.localPort ?? 0 })
        return faultOfPeer(socket, peer.id)
      },
      hello: linkHelloMessage({
        linkId: target.linkId,
        iteration: target.iteration,
        routerId: identity.id,
        dialedId: peer.id,
        dialedVersion: peer.version,
        ...(group === undefined ? {} : { group }),
      }),
      limits: linkChannelLimits(section, config.options),
      clock,
      timeoutMs: config.options.connectTimeout ?? config.options.connectTimeoutMs,
      signal,
      ...(partOf === undefined ? {} : { partOf }),
      onMessage: (message) => {
        const carried = link()
        if (carried !== null) user.onLinkMessage(carried, message)
        return null
      },
      onClose: (reason) => {
        if (dialed !== null) onClose(dialed.channel, reason)
      },
    })
    return { ...dialed, local, remote: formatHostPort({ host, port }) }
  }
}

/** Why the peer is rejected; null if it is accepted. */
function faultOfPeer(socket: TLSSocket, peerId: string): string | null {
  const shown = peerLeafDer(socket)
  if (shown === null) return 'it presented no certificate'
  const leaf = parseCertificate(shown)
  // @guard link-of-another-router--dialed
  return leafRouterId(leaf) === peerId ? null : 'its certificate belongs to another router'
}

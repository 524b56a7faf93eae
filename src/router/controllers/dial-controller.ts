import { networkInterfaces } from 'node:os'
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'

import { dialChannel } from '../../channel/dial.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { readText } from '../../channel/headers.ts'
import { readVersionLine, type VersionLine } from '../../channel/hello.ts'
import { channelLimits, type ChannelLimits } from '../../channel/limits.ts'
import { messageBounds } from '../../channel/message-bounds.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { leafControllerId, leafSpiffeId, parseCertificate } from '../../pki/certificate.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import type { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import { parseAddress } from '../../config/router/values.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import type { ControlConnection } from './control-connection.ts'
import { CONTROL_PROTOCOL, routerHelloMessage } from '../../channel/messages/control.ts'

interface DialControllerDeps {
  /** Proxy for outgoing connections; null: none. */
  readonly proxy: HttpProxy | null
  readonly names?: CachedResolver
  readonly config: RouterConfig['ctrl']
  readonly identity: () => RouterIdentity
  readonly version: VersionLine
  /** Link listeners reported to controllers; null if there are none. */
  readonly linkListeners: Uint8Array | null
  readonly clock: Clock
  readonly trace: ((peer: string, direction: 'in' | 'out', message: ChannelMessage) => void) | null
  /**
   * Trust domain of the known controllers; null: the first controller that responds determines it.
   */
  readonly trustDomain: () => string | null
  /**
   * Why a controller with this key must not be trusted, as one clause; null if it may be trusted.
   */
  readonly refusal: (id: string, keySha256: string) => string | null
  /**
   * Reserves the controller for one connection, until `release` or the end of the connection. False
   * if the controller is connected, or if another connection to it is pending.
   */
  readonly reserve: (id: string) => boolean
  readonly release: (id: string) => void
}

/** The dialed address belongs to a controller that is already connected. */
export class AlreadyConnectedError extends Error {
  override readonly name = 'ConnectedAlready'
  readonly controllerId: string

  constructor(controllerId: string) {
    super(`controller ${controllerId} answers there, and is connected already`)
    this.controllerId = controllerId
  }
}

export interface DialedController extends ControlConnection {
  readonly trustDomain: string
}

interface Known {
  readonly id: string
  readonly keySha256: string
  readonly trustDomain: string
}

/**
 * Dials a controller. Its certificate alone identifies it and must be a controller certificate:
 * routers have certificates of the same authority and choose the host names in them.
 * @throws {Error} whose message is one clause.
 */
export async function dialController(
  deps: DialControllerDeps,
  address: string,
  handlers: {
    readonly onMessage: (message: ChannelMessage) => null
    readonly onClose: (reason: string) => void
    readonly signal: AbortSignal
  },
): Promise<DialedController> {
  const { config, clock, trace, version, release } = deps
  const parsed = parseAddress(address)
  if (parsed === null) throw new Error('it is no address')
  const identity = deps.identity()
  let reservedId: string | null = null
  let known: Known | null = null
  const localAddress = resolveLocalAddress(config.bind, isIP(parsed.host) === 6 ? 6 : 4)
  const { channel, answer } = await dialChannel({
    ...handlers,
    host: parsed.host,
    port: parsed.port,
    tls: { ca: identity.caPem, cert: identity.certificatePem, key: identity.privateKeyPem },
    ...(localAddress === null ? {} : { localAddress }),
    proxy: deps.proxy,
    ...(deps.names === undefined ? {} : { names: deps.names }),
    protocol: CONTROL_PROTOCOL,
    judge: (socket) => {
      try {
        known = controllerOf(socket, deps.trustDomain())
        const { id, keySha256 } = known
        // Checked before the hello, because a controller closes the older of two channels of one
        // router.
        // @guard router-captured--hello
        if (!deps.reserve(id)) return new AlreadyConnectedError(id)
        reservedId = id
        return deps.refusal(id, keySha256)
      } catch (error) {
        return `its certificate is not that of a controller: ${errorMessage(error)}`
      }
    },
    hello: routerHelloMessage(identity.id, version, deps.linkListeners),
    limits: limitsOf(config),
    clock,
    timeoutMs: config.options.connectTimeout ?? config.options.connectTimeoutMs,
    ...(trace === null
      ? {}
      : { onFrame: (direction, message) => trace(known?.id ?? address, direction, message) }),
  }).finally(() => {
    if (reservedId !== null) release(reservedId)
  })
  const { id, trustDomain, keySha256 } = known ?? { id: '', trustDomain: '', keySha256: '' }
  const fault = answerFault(answer, id)
  if (fault !== null) {
    channel.close(fault)
    throw new Error(fault)
  }
  const versionOf =
    readVersionLine(readText(answer.headers, channelHeaderKey.helloVersion))?.version ?? ''
  const connectedAtMs = clock.nowMs()
  return { id, trustDomain, keySha256, address, version: versionOf, channel, connectedAtMs }
}

/** @throws {CertificateError} */
function controllerOf(socket: TLSSocket, trustDomain: string | null): Known {
  const shown = peerLeafDer(socket)
  if (shown === null) throw new Error('it shows none')
  const leaf = parseCertificate(shown)
  // @guard controller-by-a-router-certificate--domain
  const domain = trustDomain ?? leafSpiffeId(leaf).trustDomain
  const keySha256 = Buffer.from(leaf.publicKeySha256).toString('hex')
  // @guard controller-by-a-router-certificate--role
  return { id: leafControllerId(leaf, domain), keySha256, trustDomain: domain }
}

/** Why the channel to a controller with this response cannot be used; null if it can. */
function answerFault({ headers }: ChannelMessage, id: string): string | null {
  const claimed = readText(headers, channelHeaderKey.id)
  if (claimed !== null && claimed !== id) {
    return `it says it is another controller than ${id}, which its certificate names`
  }
  if (readVersionLine(readText(headers, channelHeaderKey.helloVersion)) === null) {
    return 'its hello has no version of five fields'
  }
  return null
}

function limitsOf({
  defaultRequestTimeout,
  heartbeats,
  options,
}: RouterConfig['ctrl']): ChannelLimits {
  return {
    ...channelLimits,
    // A full data model arrives in a single message, so the limit must be large enough for it.
    frameBodyBytesMax: Math.max(channelLimits.frameBodyBytesMax, messageBounds.dataState.bytesMax),
    heartbeatEveryMs: heartbeats.sendInterval,
    checkEveryMs: heartbeats.checkInterval,
    replyTimeoutMs: defaultRequestTimeout,
    silentMsMax: heartbeats.closeUnresponsiveTimeout,
    firstSilentMsMax: Math.max(
      heartbeats.closeUnresponsiveTimeout,
      heartbeats.sendInterval + heartbeats.closeUnresponsiveTimeout,
    ),
    ...(options.writeTimeout === null ? {} : { writeMsMax: options.writeTimeout }),
  }
}

/** @param bind an interface name or one of its addresses. @throws {Error} when it is neither. */
export function resolveLocalAddress(bind: string | null, family: 4 | 6): string | null {
  if (bind === null) return null
  if (isIP(bind) !== 0) return bind
  const found = networkInterfaces()[bind]?.find((one) => one.family === `IPv${family}`)
  if (found !== undefined) return found.address
  throw new Error(`ctrl.bind: ${bind} is not an interface of this host with an address`)
}

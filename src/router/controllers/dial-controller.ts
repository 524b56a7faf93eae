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
  /** Proxy for outgoing connections; null: no proxy. */
  readonly proxy: HttpProxy | null
  readonly names?: CachedResolver
  readonly config: RouterConfig['ctrl']
  readonly identity: () => RouterIdentity
  readonly version: VersionLine
  /**
   * Encoded list of the router's link listeners, which it reports to controllers; null if it has
   * none.
   */
  readonly linkListeners: Uint8Array | null
  readonly clock: Clock
  readonly trace: ((peer: string, direction: 'in' | 'out', message: ChannelMessage) => void) | null
  /**
   * Trust domain of the known controllers; null: the first controller that responds determines it.
   */
  readonly trustDomain: () => string | null
  /**
   * Returns why a controller with this key must not be trusted, as a clause for a message; null if
   * it may be trusted.
   */
  readonly refusal: (id: string, keySha256: string) => string | null
  /**
   * Reserves the controller for one connection, until `release` is called or the connection ends.
   * Returns false if the controller is connected, or if another hello to it has no answer yet.
   */
  readonly reserve: (id: string) => boolean
  readonly release: (id: string) => void
}

/**
 * The controller that responds at the dialed address is already connected, or another hello to it
 * has no answer yet.
 */
export class AlreadyConnectedError extends Error {
  override readonly name = 'AlreadyConnectedError'
  readonly controllerId: string

  constructor(controllerId: string) {
    super(`controller ${controllerId} answers there, and is connected already`)
    this.controllerId = controllerId
  }
}

/** The router does not trust the controller that responds at the dialed address. */
export class ControllerRefusedError extends Error {
  override readonly name = 'ControllerRefusedError'
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
 * Dials a controller and identifies it only by its certificate, which must be a controller
 * certificate. The host name proves nothing: the same authority issues router certificates, and
 * routers choose the host names in them.
 * @throws {Error} whose message is a clause to be used within a sentence.
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
        // Reserved before the hello, because a controller that receives a second channel of a
        // router closes the first one.
        // @guard router-captured--hello
        if (!deps.reserve(id)) return new AlreadyConnectedError(id)
        reservedId = id
        const fault = deps.refusal(id, keySha256)
        return fault === null ? null : new ControllerRefusedError(fault)
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

/** @throws when the peer presents no controller certificate. */
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

/** Why this controller cannot be used, according to its answer to the hello; null if it can. */
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
    // Large enough for a full data model, which arrives in a single message.
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

/**
 * @param bind an IP address, or the name of an interface.
 * @throws {Error} when no interface of this name has an address of this IP version.
 */
export function resolveLocalAddress(bind: string | null, family: 4 | 6): string | null {
  if (bind === null) return null
  if (isIP(bind) !== 0) return bind
  const found = networkInterfaces()[bind]?.find((one) => one.family === `IPv${family}`)
  if (found !== undefined) return found.address
  throw new Error(`ctrl.bind: ${bind} is not an interface of this host with an address`)
}

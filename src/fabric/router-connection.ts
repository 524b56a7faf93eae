import type { Channel } from '../channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../channel/frame.ts'
import { evaluatesPosture } from '../lib/router-capabilities.ts'
import { readMask } from '../channel/headers.ts'
import {
  type Hello,
  type HelloGroup,
  isSocketOfGroup,
  type JoinableGroup,
  type VersionLine,
} from '../channel/hello.ts'
import type { RouterStatus } from '../ports/router-status.ts'
import type { AdmittedRouter } from './router-admission.ts'
import {
  controlHeaderKey,
  type ControllerAddress,
  controlContentType,
  readEdgeRouterHello,
  controllerHelloMessage,
} from '../channel/messages/control.ts'
import { routerLimits } from './limits.ts'
import { readInterfaces } from '../channel/messages/reports.ts'
import { errorMessage } from '../lib/error-code.ts'
import { channelContentType, channelHeaderKey } from '../channel/numbers.ts'
import { edgeRefusalMessage } from '../channel/messages/circuit-requests.ts'
import { edgeErrorCode } from '../channel/messages/edge.ts'

const REASON_CHARACTERS_MAX = 200

/**
 * An asynchronous handler returns its promise, so that a rejection is handled; the channel keeps
 * reading meanwhile. A long-running handler returns an iterator of steps, each well below a
 * millisecond, which alternate with other work; the channel reads no further message until the last
 * step.
 */
export type MessageHandler = (
  connection: RouterConnection,
  message: ChannelMessage,
) => void | Promise<void> | Iterator<void>

interface ConnectionDeps {
  readonly channel: Channel
  /**
   * The group that additional sockets can join if they present its secret; null if the router
   * announced no group.
   */
  readonly group: JoinableGroup | null
  readonly router: AdmittedRouter
  /** Remote address. */
  readonly address: string
  readonly hello: Hello
  readonly version: VersionLine
  /**
   * The handler for a content type that another part of the controller handles; null if there is
   * none.
   */
  readonly handlerOf: (contentType: number) => MessageHandler | null
  /** Version of this controller, as reported to routers. */
  readonly ownVersion: string
  readonly onStatus: (status: RouterStatus) => void
  readonly onMembersAsked: () => void
}

/**
 * The connection of an admitted router: answers the router's requests and stores what the router
 * reports about itself.
 */
export class RouterConnection {
  readonly channel: Channel
  /** Remote address. */
  readonly address: string
  /** The admitted router; replaced when its record or certificate changes. */
  router: AdmittedRouter
  /**
   * New certificate that was sent to the router over this channel and that the router may activate;
   * '' if none.
   */
  offeredCertPem = ''
  readonly hello: Hello
  /** Version of the router program. */
  readonly version: VersionLine
  /**
   * True if the router's hello announced that the router evaluates the posture of OIDC clients.
   */
  readonly evaluatesPosture: boolean
  readonly #deps: ConnectionDeps
  /**
   * The lists of controllers and the list index that were sent last; '' and 0 if none were sent.
   */
  sentAddresses = ''
  sentControllers: readonly ControllerAddress[] = []
  sentIndex = 0
  sentLeaderIndex = 0
  #status: RouterStatus
  /** Sockets of this router in addition to the socket of `channel`. */
  readonly #sockets = new Set<Channel>()

  constructor(deps: ConnectionDeps) {
    this.#deps = deps
    this.channel = deps.channel
    this.address = deps.address
    this.router = deps.router
    this.hello = deps.hello
    this.version = deps.version
    const capabilities = readMask(deps.hello.headers, controlHeaderKey.capabilities)
    this.evaluatesPosture = evaluatesPosture(capabilities)
    this.#status = {
      hostname: '',
      protocols: {},
      version: deps.version,
      capabilities: [...capabilities],
      linkListeners: [],
      interfaces: [],
    }
  }

  /** Called when the router has activated the new certificate; its channel stays open. */
  hasOffered(): void {
    if (this.offeredCertPem !== '') this.router = { ...this.router, certPem: this.offeredCertPem }
    this.offeredCertPem = ''
  }

  /** The reason why an additional socket may not join; null if it may join. */
  socketFault(group: HelloGroup): string | null {
    if (!isSocketOfGroup(this.#deps.group, group)) return 'the router has no channel of this group'
    // @guard sockets-of-a-control-channel--bound
    const isFull = this.#sockets.size + 1 >= routerLimits.routerSocketsMax
    return isFull ? 'the channel has too many sockets' : null
  }

  /** Adds a socket over which messages and replies of the router may also arrive. */
  addSocket(socket: Channel): void {
    this.#sockets.add(socket)
  }

  removeSocket(socket: Channel): void {
    this.#sockets.delete(socket)
  }

  closeSockets(reason: string): void {
    for (const socket of Array.from(this.#sockets)) socket.close(reason)
  }

  /** Called when the router is admitted and its hello has been answered. */
  start(): void {
    this.report({})
    if (this.#deps.router.isEdge) void this.#greet()
  }

  /** Updates and publishes the status that the router reported about itself. */
  report(change: Partial<RouterStatus>): void {
    this.#status = { ...this.#status, ...change }
    if (!this.channel.isClosed) this.#deps.onStatus(this.#status)
  }

  /** @returns the steps that remain; null if none. */
  onMessage(message: ChannelMessage): Iterator<void> | null {
    const { channel, handlerOf, onMembersAsked } = this.#deps
    const { contentType: type } = message
    const handle = handlerOf(type)
    if (handle !== null) return this.#perform(handle, message)
    if (type === channelContentType.ping) channel.replyResult(message, true, 'ok')
    else if (type === controlContentType.requestClusterMembers) onMembersAsked()
    else return this.#perform(this.#handlerOf(type), message)
    return null
  }

  #handlerOf(type: number): MessageHandler {
    const { channel } = this.#deps
    if (type !== controlContentType.updateRouterInterfaces)
      return (_, message) => refuse(channel, message)
    return (_, message) => {
      this.report({ interfaces: readInterfaces(message.body) })
      channel.replyResult(message, true)
    }
  }

  /**
   * Runs a handler. If the message cannot be decoded or causes an unexpected error, only the
   * sender's channel is closed.
   */
  #perform(handle: MessageHandler, message: ChannelMessage): Iterator<void> | null {
    const fail = (error: unknown): void => {
      const reason = errorMessage(error)
      const shown = reason.slice(0, REASON_CHARACTERS_MAX)
      this.channel.close(`message ${message.contentType} can not be read: ${shown}`)
    }
    try {
      const later = handle(this, message)
      if (later === undefined) return null
      if ('next' in later) return guarded(later, fail)
      later.catch(fail)
    } catch (error) {
      fail(error)
    }
    return null
  }

  /**
   * Requests an edge router's client addresses. A router that does not reply stays connected
   * without an address.
   */
  async #greet(): Promise<void> {
    const { channel, ownVersion } = this.#deps
    try {
      const { contentType, body } = await channel.request(controllerHelloMessage(ownVersion))
      if (contentType !== controlContentType.clientHello) return
      this.report(readEdgeRouterHello(body))
    } catch {
      // Ignored: the channel is closed, the request timed out, or the reply is invalid.
    }
  }
}

function* guarded(steps: Iterator<void>, fail: (error: unknown) => void): Generator<void, void> {
  try {
    while (steps.next().done !== true) yield
  } catch (error) {
    fail(error)
  }
}

/** Message types without a response and without a handler; they are ignored. */
const notices: ReadonlySet<number> = new Set([
  channelContentType.result,
  controlContentType.traceEvent,
  controlContentType.inspectResponse,
  controlContentType.validateTerminatorsV2Response,
  controlContentType.clientHello,
  controlContentType.error,
  controlContentType.validateDataStateResponse,
])

/**
 * Tunnel requests that only a router without a data model sends, for an API session, circuits,
 * services and terminators. Routers that connect to this controller have a data model.
 */
const oldTunnelRequests: ReadonlySet<number> = new Set([
  controlContentType.createApiSession,
  controlContentType.createCircuitForService,
  controlContentType.listServices,
  controlContentType.createTunnelTerminator,
])

/**
 * Refuses a request that has no handler, in the form that its sender accepts as a refusal. Without
 * a response, the router would wait until its timeout.
 */
function refuse(channel: Channel, message: ChannelMessage): void {
  const { contentType, headers } = message
  if (notices.has(contentType) || headers.has(channelHeaderKey.replyFor)) return
  const refusal = refusalOf(message)
  if (refusal === null) channel.replyResult(message, false, NOT_SUPPORTED)
  else channel.reply(message, refusal)
}

const NOT_SUPPORTED = 'not supported'
const NO_TUNNEL = 'tunnels are served by the data model of routers alone'

/** The specific refusal for this message type; null for the generic refusal. */
function refusalOf(message: ChannelMessage): OutboundMessage | null {
  const { contentType } = message
  if (oldTunnelRequests.has(contentType))
    return edgeRefusalMessage(edgeErrorCode.tunnelingNotEnabled, NO_TUNNEL)
  return null
}

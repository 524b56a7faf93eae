import type { Channel } from '../channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../channel/frame.ts'
import type { Clock } from '../lib/clock.ts'
import { evaluatesPosture } from '../lib/router-capabilities.ts'
import { readBitMask } from '../channel/headers.ts'
import {
  type Hello,
  type HelloGroup,
  hasGroupCredentials,
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
 * Handles a message. If it returns a promise, its rejection is handled, and the channel continues
 * to read. If it returns an iterator, the steps alternate with other work, each should take much
 * less than a millisecond, and the channel reads no further message until the last step.
 */
export type MessageHandler = (
  connection: RouterConnection,
  message: ChannelMessage,
) => void | Promise<void> | Iterator<void>

interface RouterConnectionDeps {
  readonly channel: Channel
  readonly clock: Pick<Clock, 'monotonicMs'>
  /**
   * ID and secret that additional sockets must present to join the channel; null if the router
   * announced no group.
   */
  readonly group: JoinableGroup | null
  readonly router: AdmittedRouter
  /** Remote address of the router's first socket. */
  readonly address: string
  readonly hello: Hello
  readonly version: VersionLine
  /**
   * Returns the handler for a content type that another part of the controller handles; null if
   * there is none.
   */
  readonly handlerOf: (contentType: number) => MessageHandler | null
  /** Version of this controller, which it reports to routers. */
  readonly ownVersion: string
  readonly onStatus: (status: RouterStatus) => void
  readonly onMembersAsked: () => void
}

/**
 * The connection of an admitted router: answers its requests and stores the status that it reports.
 */
export class RouterConnection {
  readonly channel: Channel
  /** Remote address of the router's first socket. */
  readonly address: string
  /** The admitted router; replaced when the router confirms a new certificate. */
  router: AdmittedRouter
  /**
   * New certificate that was sent to the router over this channel and that the router has not
   * confirmed; '' if there is none.
   */
  offeredCertPem = ''
  readonly hello: Hello
  /** Version of the router program. */
  readonly version: VersionLine
  /** True if the router announced in its hello that it evaluates the posture of OIDC clients. */
  readonly evaluatesPosture: boolean
  readonly #deps: RouterConnectionDeps
  /**
   * The list of controllers that was sent last, as text and as array, and the greatest index of a
   * sent list; '', [] and 0 if none was sent.
   */
  sentAddresses = ''
  sentControllers: readonly ControllerAddress[] = []
  sentIndex = 0
  /** IDs of the controllers that the list that was sent last omits, because they are lost. */
  omittedControllers = ''
  sentLeaderIndex = 0
  #status: RouterStatus
  /** When the hello was answered; monotonic ms. */
  readonly #answeredMs: number
  #hasSentMessage = false
  #backlogEndMs = -Infinity
  /** Sockets of this router other than the socket of `channel`. */
  readonly #sockets = new Set<Channel>()

  constructor(deps: RouterConnectionDeps) {
    this.#deps = deps
    this.channel = deps.channel
    this.address = deps.address
    this.router = deps.router
    this.hello = deps.hello
    this.#answeredMs = deps.clock.monotonicMs()
    this.version = deps.version
    const capabilities = readBitMask(deps.hello.headers, controlHeaderKey.capabilities)
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

  /** Called when the router has confirmed its new certificate; the channel stays open. */
  confirmOfferedCertificate(): void {
    if (this.offeredCertPem !== '') this.router = { ...this.router, certPem: this.offeredCertPem }
    this.offeredCertPem = ''
  }

  /** Whether this is a router of OpenZiti 1.x: its hello announces no group of sockets. */
  get isOpenZitiV1(): boolean {
    return this.hello.group === null
  }

  /**
   * True while the router sends messages that waited in its queue because it did not use the
   * channel after the hello. A router of OpenZiti 1.x that runs a tunnel does not use it for 10 s,
   * because `HostedServiceRegistry.HandleReestablish` sleeps while it holds the channel's lock.
   */
  get sendsBacklog(): boolean {
    return this.#deps.clock.monotonicMs() < this.#backlogEndMs
  }

  /** Why an additional socket may not join the channel; null if it may. */
  socketFault(group: HelloGroup): string | null {
    if (!hasGroupCredentials(this.#deps.group, group))
      return 'the router has no channel of this group'
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

  /** Stores and publishes a change of the status that the router reports. */
  report(change: Partial<RouterStatus>): void {
    this.#status = { ...this.#status, ...change }
    if (!this.channel.isClosed) this.#deps.onStatus(this.#status)
  }

  /** @returns the remaining steps; null if there are none. */
  onMessage(message: ChannelMessage): Iterator<void> | null {
    const { channel, handlerOf, onMembersAsked } = this.#deps
    const { contentType: type } = message
    if (!this.#hasSentMessage) this.#onFirstMessage()
    const handle = handlerOf(type)
    if (handle !== null) return this.#perform(handle, message)
    if (type === channelContentType.ping) channel.replyResult(message, true, 'ok')
    else if (type === controlContentType.requestClusterMembers) onMembersAsked()
    else return this.#perform(this.#handlerOf(type), message)
    return null
  }

  #onFirstMessage(): void {
    this.#hasSentMessage = true
    const nowMs = this.#deps.clock.monotonicMs()
    if (!this.isOpenZitiV1 || nowMs - this.#answeredMs < routerLimits.routerSilentMs) return
    this.#backlogEndMs = nowMs + routerLimits.routerBacklogMs
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
   * Runs a handler. If it throws, for example because the message cannot be decoded, only the
   * channel of the sender is closed.
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
   * Requests the client addresses of an edge router. A router that does not answer stays connected,
   * without addresses.
   */
  async #greet(): Promise<void> {
    const { channel, ownVersion } = this.#deps
    try {
      const { contentType, body } = await channel.request(controllerHelloMessage(ownVersion))
      if (contentType !== controlContentType.clientHello) return
      this.report(readEdgeRouterHello(body))
    } catch {
      // The channel has closed, the request timed out, or the answer is invalid; the connection
      // continues.
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

/** Message types that require no response; they are ignored if there is no handler for them. */
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
 * Requests of a tunnel for API sessions, circuits, services and terminators that only routers
 * without a data model send. Every router that connects to this controller has a data model.
 */
const oldTunnelRequests: ReadonlySet<number> = new Set([
  controlContentType.createApiSession,
  controlContentType.createCircuitForService,
  controlContentType.listServices,
  controlContentType.createTunnelTerminator,
])

/**
 * Refuses a request without a handler with the type of response that its sender expects. Without a
 * response, the router would wait until its timeout.
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

/**
 * The refusal for a request type whose senders expect a specific response; null if the generic
 * refusal is sufficient.
 */
function refusalOf(message: ChannelMessage): OutboundMessage | null {
  const { contentType } = message
  if (oldTunnelRequests.has(contentType))
    return edgeRefusalMessage(edgeErrorCode.tunnelingNotEnabled, NO_TUNNEL)
  return null
}

import type { Channel } from '../channel/channel.ts'
import type { ChannelMessage } from '../channel/frame.ts'
import { evaluatesPosture } from '../lib/router-capabilities.ts'
import { readMask } from '../channel/headers.ts'
import type { Hello, VersionLine } from '../channel/hello.ts'
import type { RouterStatus } from '../ports/router-status.ts'
import type { AdmittedRouter } from './admission.ts'
import {
  controlHeader,
  type ControllerAddress,
  controlMessage,
  readClientHello,
  serverHello,
} from '../channel/messages/control.ts'
import { refuse } from './refused-requests.ts'
import { errorMessage } from '../lib/error-code.ts'
import { contentType } from '../channel/numbers.ts'

/**
 * Messages that a router waits for an answer to, and that succeed without anything being done for
 * them here.
 */
const acknowledged: ReadonlySet<number> = new Set([controlMessage.updateRouterInterfaces])

const REASON_CHARACTERS_MAX = 200

/**
 * One that goes on later gives its promise, so that whatever it ends with is looked at; the channel
 * is read on meanwhile. One that takes long gives its steps, each well below a millisecond, which
 * take turns with the work for others; the channel is not read before the last one.
 */
export type MessageHandler = (
  connection: RouterConnection,
  message: ChannelMessage,
) => void | Promise<void> | Iterator<void>

export interface ConnectionDeps {
  readonly channel: Channel
  readonly router: AdmittedRouter
  /** It has connected from. */
  readonly address: string
  readonly hello: Hello
  readonly version: VersionLine
  /** Handler of other parts of the controller for a message; null: none of them takes it. */
  readonly dutyOf: (contentType: number) => MessageHandler | null
  /** Version of this controller, as routers are told it. */
  readonly ownVersion: string
  readonly onStatus: (status: RouterStatus) => void
  readonly onMembersAsked: () => void
}

/** An admitted router: answers its requests, and learns what it says of itself. */
export class RouterConnection {
  readonly channel: Channel
  /** It has connected from. */
  readonly address: string
  /** Router that it was admitted by, or what has taken the place of that since. */
  router: AdmittedRouter
  /** Certificate that it was sent over this channel, and may go on by; '' without one. */
  offeredCertPem = ''
  readonly hello: Hello
  /** Version of the program of the router. */
  readonly version: VersionLine
  /** Its hello says that it judges what clients of OIDC report on their devices. */
  readonly evaluatesPosture: boolean
  readonly #deps: ConnectionDeps
  /** Last lists of controllers and leaders that it was sent; '' and 0: none. */
  sentAddresses = ''
  sentControllers: readonly ControllerAddress[] = []
  sentIndex = 0
  sentLeaderIndex = 0

  constructor(deps: ConnectionDeps) {
    this.#deps = deps
    this.channel = deps.channel
    this.address = deps.address
    this.router = deps.router
    this.hello = deps.hello
    this.version = deps.version
    const capabilities = readMask(deps.hello.headers, controlHeader.capabilities)
    this.evaluatesPosture = evaluatesPosture(capabilities)
  }

  /** The certificate that it was sent is the one in force: the channel goes on by it. */
  hasOffered(): void {
    if (this.offeredCertPem !== '') this.router = { ...this.router, certPem: this.offeredCertPem }
    this.offeredCertPem = ''
  }

  /** The router is admitted and its hello answered. */
  start(): void {
    const { onStatus, router } = this.#deps
    onStatus({ hostname: '', protocols: {}, ...this.#known() })
    if (router.isEdge) void this.#greet()
  }

  /** Facts that its hello gave of its program. */
  #known(): Pick<RouterStatus, 'version' | 'capabilities'> {
    const capabilities = [...readMask(this.hello.headers, controlHeader.capabilities)]
    return { version: this.version, capabilities }
  }

  /** @returns what is left to do, in steps. */
  onMessage(message: ChannelMessage): Iterator<void> | null {
    const { channel, dutyOf, onMembersAsked } = this.#deps
    const { contentType: type } = message
    const handle = dutyOf(type)
    if (handle !== null) return this.#perform(handle, message)
    if (type === contentType.ping) channel.replyResult(message, true, 'ok')
    else if (type === controlMessage.requestClusterMembers) onMembersAsked()
    else if (acknowledged.has(type)) channel.replyResult(message, true)
    else return this.#perform(() => refuse(channel, message), message)
    return null
  }

  /**
   * A message that can not be read, or that a mistake of ours breaks at, ends the channel of its
   * sender and nothing else.
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
   * Asks an edge router where clients reach it. A router that does not answer stays connected, and
   * shows no address.
   */
  async #greet(): Promise<void> {
    const { channel, ownVersion, onStatus } = this.#deps
    try {
      const { contentType, body } = await channel.request(serverHello(ownVersion))
      if (contentType !== controlMessage.clientHello) return
      const said = readClientHello(body)
      if (!channel.isClosed) onStatus({ ...said, ...this.#known() })
    } catch {
      // The channel is closed, the time is over, or the reply is none.
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

import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../channel/frame.ts'
import { encodeFlag, encodeInt32, encodeText } from '../../channel/headers.ts'
import { channelContentType, channelHeaderKey } from '../../channel/numbers.ts'
import type { EventNamespace } from '../../lib/event-namespaces.ts'
import { Problem } from '../../lib/problems.ts'
import type { EventFilter, EventPosition } from '../../ports/events.ts'
import type { NetworkValidations, ValidationFinding } from '../../ports/network-validations.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import { eventLimits } from '../limits.ts'
import type { EventStreamOutput } from './event-stream.ts'
import { parseSubscriptions, SubscriptionFault } from './subscriptions.ts'
import {
  startValidation,
  validationFindingMessage,
  validationResponseTypes,
  validationStartMessage,
} from './validation-messages.ts'
import { webSocketCloseCode, EventSocket, type WebSocketUpgradeRequest } from './event-socket.ts'

/** Content types of OpenZiti's management protocol. */
const messages = { streamEvents: 10_040, event: 10_041 } as const
const EVENT_TYPE_HEADER = 10
const REQUEST_WAIT_MS = 10_000

const frameLimits = {
  frameHeadersBytesMax: 4096,
  frameHeadersMax: 32,
  frameBodyBytesMax: eventLimits.webSocketMessageBytesMax,
}

interface ManagementChannelDeps {
  readonly permits: (namespace: EventNamespace) => boolean
  readonly validations: NetworkValidations
  /** Called with the subscriptions that the client requests. */
  readonly onRequest: (filter: EventFilter) => void
  readonly onDrain: () => void
  readonly onClose: () => void
}

/**
 * The channel that OpenZiti's CLI opens to receive events and to run validations. Each WebSocket
 * message contains one frame of the channel protocol; the protocol's hello message is not used. The
 * channel accepts one request for events, and one validation at a time. Other messages get the
 * response that the protocol requires, or are ignored.
 */
export class ManagementChannel implements EventStreamOutput {
  readonly #deps: ManagementChannelDeps
  readonly #socket: EventSocket
  #deadline: NodeJS.Timeout | undefined
  #sequence = 0
  #hasAsked = false
  #isValidating = false
  #isClosed = false
  /** Resumes a validation that waits until the client has read. */
  #resume: () => void = () => undefined

  constructor(upgrade: WebSocketUpgradeRequest, deps: ManagementChannelDeps) {
    this.#deps = deps
    this.#waitForRequest()
    this.#socket = new EventSocket(upgrade, {
      onMessage: (data) => this.#onMessage(data),
      onDrain: () => {
        deps.onDrain()
        this.#resume()
      },
      onClose: () => {
        this.#isClosed = true
        clearTimeout(this.#deadline)
        this.#resume()
        deps.onClose()
      },
    })
  }

  #waitForRequest(): void {
    this.#deadline = setTimeout(
      () => this.close('no request was received in time'),
      REQUEST_WAIT_MS,
    )
  }

  event({ namespace, text }: EmittedEvent): boolean {
    const headers = new Map([[EVENT_TYPE_HEADER, encodeText(namespace)]])
    return this.#send(messages.event, headers, encodeText(text))
  }

  /**
   * Sends nothing: a stream on this channel always begins with the next event, so it has no gap.
   */
  gap(_from: EventPosition, _to: EventPosition): boolean {
    return true
  }

  heartbeat(): boolean {
    return this.#socket.ping()
  }

  close(reason: string): void {
    this.#socket.close(webSocketCloseCode.goingAway, reason)
  }

  #onMessage(data: Buffer): void {
    const { messages: read, fault } = new FrameDecoder(frameLimits).push(data)
    const [message] = read
    if (fault !== null || message === undefined || read.length > 1) {
      this.#socket.close(webSocketCloseCode.protocol, 'a message is not one frame of the channel')
    } else if (message.contentType === messages.streamEvents) this.#onRequest(message)
    else if (message.contentType === channelContentType.ping) this.#reply(message, true, 'ok')
    else if (validationResponseTypes.has(message.contentType)) void this.#validate(message)
    else if (!message.headers.has(channelHeaderKey.replyFor)) {
      this.#reply(message, false, `content type ${message.contentType} is not offered here`)
    }
  }

  /**
   * Runs a validation. The response must have the type that belongs to the request, because the CLI
   * accepts no other.
   */
  async #validate(message: ChannelMessage): Promise<void> {
    if (this.#isValidating) {
      return this.#start(message, 'a validation is under way on this connection; open another one')
    }
    this.#isValidating = true
    clearTimeout(this.#deadline)
    try {
      const { count, findings } = await startValidation(this.#deps.validations, message)
      this.#start(message, '', count)
      let rest = count
      for await (const finding of findings) {
        if (finding.kind !== 'host') rest -= 1
        if (!(await this.#sendFinding(finding))) return
      }
      // Closes the channel; otherwise the client would wait forever for the missing findings.
      if (rest > 0) this.close('the validation failed; the log of the controller says why')
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      this.#start(message, sentenceOf(error))
    } finally {
      this.#isValidating = false
      if (!this.#hasAsked && !this.#isClosed) this.#waitForRequest()
    }
  }

  /** @param refusal reason why the validation was not started; '' if it was started. */
  #start({ contentType: asked, sequence }: ChannelMessage, refusal: string, count = 0): void {
    const headers = new Map([[channelHeaderKey.replyFor, encodeInt32(sequence)]])
    const kind = validationResponseTypes.get(asked) ?? channelContentType.result
    this.#send(kind, headers, validationStartMessage(refusal, count))
  }

  /** @returns false when the client has disconnected. */
  async #sendFinding(finding: ValidationFinding): Promise<boolean> {
    if (this.#isClosed) return false
    const { contentType: kind, body } = validationFindingMessage(finding)
    if (!this.#send(kind, new Map<number, Uint8Array>(), body)) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    }
    return !this.#isClosed
  }

  #onRequest(message: ChannelMessage): void {
    if (this.#hasAsked) {
      this.#reply(
        message,
        false,
        'events are already streamed on this connection; open another one',
      )
      return
    }
    try {
      const filter = parseSubscriptions(message.body, this.#deps.permits)
      this.#hasAsked = true
      clearTimeout(this.#deadline)
      this.#reply(message, true, 'success')
      this.#deps.onRequest(filter)
    } catch (error) {
      if (!(error instanceof SubscriptionFault)) throw error
      this.#reply(message, false, error.message)
    }
  }

  #reply({ sequence }: ChannelMessage, isSuccess: boolean, text: string): void {
    const headers = new Map([
      [channelHeaderKey.replyFor, encodeInt32(sequence)],
      [channelHeaderKey.resultSuccess, encodeFlag(isSuccess)],
    ])
    this.#send(channelContentType.result, headers, encodeText(text))
  }

  #send(kind: number, headers: ReadonlyMap<number, Uint8Array>, body: Uint8Array): boolean {
    this.#sequence = (this.#sequence + 1) % 0x7fff_ffff
    return this.#socket.send(
      encodeFrame({ contentType: kind, sequence: this.#sequence, headers, body }),
    )
  }
}

function sentenceOf({ fault, message }: Problem): string {
  return fault === null ? message : `${fault.field} ${fault.reason}`
}

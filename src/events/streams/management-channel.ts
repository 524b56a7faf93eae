import { create, toBinary } from '@bufbuild/protobuf'

import { ValidationStartSchema } from '../../../proto/gen/management_pb.ts'
import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../channel/frame.ts'
import { flagValue, int32Value, textValue } from '../../channel/headers.ts'
import { contentType, headerKey } from '../../channel/numbers.ts'
import type { EventNamespace } from '../../lib/event-namespaces.ts'
import { notBuiltYet } from '../../lib/not-built-yet.ts'
import type { EventFilter, EventPosition } from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import { eventLimits } from '../limits.ts'
import type { StreamOutput } from './event-stream.ts'
import { filterOfSubscriptions, SubscriptionFault } from './subscriptions.ts'
import { closeCode, EventSocket, type Upgrade } from './web-socket.ts'

/** Of the management protocol of the API family. */
const messages = { streamEvents: 10_040, event: 10_041 } as const
const EVENT_TYPE_HEADER = 10
/**
 * What `ziti fabric validate` asks for, with the type of the answer that it waits for: of
 * terminators, links, terminators of SDKs, the data model, connections of identities, terminators
 * of edge routers, circuits and dialers.
 */
const validationAnswers: ReadonlyMap<number, number> = notBuiltYet(
  new Map([
    [10_100, 10_101],
    [10_103, 10_104],
    [10_106, 10_107],
    [10_109, 10_110],
    [10_112, 10_113],
    [10_115, 10_116],
    [10_118, 10_119],
    [10_122, 10_123],
  ]),
)
const REQUEST_WAIT_MS = 10_000

const frameLimits = {
  frameHeadersBytesMax: 4096,
  frameHeadersMax: 32,
  frameBodyBytesMax: eventLimits.webSocketMessageBytesMax,
}

export interface ManagementChannelParts {
  readonly permits: (namespace: EventNamespace) => boolean
  /** Its client has said what it wants. */
  readonly onRequest: (filter: EventFilter) => void
  readonly onDrain: () => void
  readonly onClose: () => void
}

/**
 * The channel that the CLI of the API family opens for events: a frame of the channel protocol in
 * each message of a web socket, without a hello. One request for events is taken; all else is
 * answered as it must be, or passed over.
 */
export class ManagementChannel implements StreamOutput {
  readonly #parts: ManagementChannelParts
  readonly #socket: EventSocket
  readonly #deadline: NodeJS.Timeout
  #sequence = 0
  #hasAsked = false

  constructor(upgrade: Upgrade, parts: ManagementChannelParts) {
    this.#parts = parts
    this.#deadline = setTimeout(
      () => this.close('no request was received in time'),
      REQUEST_WAIT_MS,
    )
    this.#socket = new EventSocket(upgrade, {
      onMessage: (data) => this.#onMessage(data),
      onDrain: parts.onDrain,
      onClose: () => {
        clearTimeout(this.#deadline)
        parts.onClose()
      },
    })
  }

  event({ namespace, text }: EmittedEvent): boolean {
    const headers = new Map([[EVENT_TYPE_HEADER, textValue(namespace)]])
    return this.#send(messages.event, headers, textValue(text))
  }

  /** It begins with what comes, so there is none. */
  gap(_from: EventPosition, _to: EventPosition): boolean {
    return true
  }

  heartbeat(): boolean {
    return this.#socket.ping()
  }

  close(reason: string): void {
    this.#socket.close(closeCode.goingAway, reason)
  }

  #onMessage(data: Buffer): void {
    const { messages: read, fault } = new FrameDecoder(frameLimits).push(data)
    const [message] = read
    if (fault !== null || message === undefined || read.length > 1) {
      this.#socket.close(closeCode.protocol, 'a message is not one frame of the channel')
    } else if (message.contentType === messages.streamEvents) this.#onRequest(message)
    else if (message.contentType === contentType.ping) this.#reply(message, true, 'ok')
    else if (validationAnswers.has(message.contentType)) this.#refuseValidation(message)
    else if (!message.headers.has(headerKey.replyFor)) {
      this.#reply(message, false, `content type ${message.contentType} is not offered here`)
    }
  }

  /** In the form that its client reads: of another type it would tell its user nothing but that. */
  #refuseValidation({ contentType: asked, sequence }: ChannelMessage): void {
    const refusal = create(ValidationStartSchema, { message: 'validation is not offered here yet' })
    const headers = new Map([[headerKey.replyFor, int32Value(sequence)]])
    const body = toBinary(ValidationStartSchema, refusal)
    this.#send(validationAnswers.get(asked) ?? contentType.result, headers, body)
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
      const filter = filterOfSubscriptions(message.body, this.#parts.permits)
      this.#hasAsked = true
      clearTimeout(this.#deadline)
      this.#reply(message, true, 'success')
      this.#parts.onRequest(filter)
    } catch (error) {
      if (!(error instanceof SubscriptionFault)) throw error
      this.#reply(message, false, error.message)
    }
  }

  #reply({ sequence }: ChannelMessage, isSuccess: boolean, text: string): void {
    const headers = new Map([
      [headerKey.replyFor, int32Value(sequence)],
      [headerKey.resultSuccess, flagValue(isSuccess)],
    ])
    this.#send(contentType.result, headers, textValue(text))
  }

  #send(kind: number, headers: ReadonlyMap<number, Uint8Array>, body: Uint8Array): boolean {
    this.#sequence = (this.#sequence + 1) % 0x7fff_ffff
    return this.#socket.send(
      encodeFrame({ contentType: kind, sequence: this.#sequence, headers, body }),
    )
  }
}

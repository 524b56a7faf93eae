import { fromBinary } from '@bufbuild/protobuf'
import { duplexPair } from 'node:stream'

import {
  type CreateFabricCircuit,
  CreateFabricCircuitSchema,
} from '../../../proto/gen/router_pb.ts'
import { Channel } from '../../../src/channel/channel.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import { encodeText } from '../../../src/channel/headers.ts'
import { channelLimits } from '../../../src/channel/limits.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { ControlConnection } from '../../../src/router/controllers/control-connection.ts'

/**
 * A controller that receives requests for circuits, over a real channel; the test gives its
 * answers.
 */
export class AskedController {
  readonly connection: ControlConnection
  readonly asked: CreateFabricCircuit[] = []
  /** If null, the controller creates every circuit, with the name `circuit N`. */
  refusal: string | null = null
  /** If true, the controller answers nothing. */
  isSilent = false
  readonly #channel: Channel
  #last: ChannelMessage | null = null
  #created = 0

  constructor(id: string) {
    const [near, far] = duplexPair()
    const hello: ChannelMessage = {
      contentType: 0,
      sequence: -1,
      headers: new Map(),
      body: encodeText(id),
    }
    const parts = { limits: channelLimits, clock: systemClock, onClose: () => undefined }
    const router: Channel = new Channel({
      ...parts,
      socket: near,
      hello,
      onHello: () => router.open(null),
      onMessage: () => null,
    })
    this.#channel = new Channel({
      ...parts,
      socket: far,
      onHello: () => this.#channel.open({ ...hello, contentType: 2 }),
      onMessage: (message) => {
        this.#onMessage(message)
        return null
      },
    })
    this.connection = {
      id,
      address: '',
      keySha256: '',
      version: 'v2.0.0',
      channel: router,
      connectedAtMs: 0,
    }
  }

  close(): void {
    this.#channel.close('the test ends')
  }

  #onMessage(message: ChannelMessage): void {
    this.asked.push(fromBinary(CreateFabricCircuitSchema, message.body))
    this.#last = message
    if (!this.isSilent) this.answerLast()
  }

  answerLast(): void {
    const message = this.#last
    if (message === null) return
    if (this.refusal !== null) {
      this.#channel.reply(message, { contentType: 1016, body: encodeText(this.refusal) })
      return
    }
    this.#created += 1
    this.#channel.reply(message, {
      contentType: 1001,
      headers: new Map([[1100, encodeText(`ingress ${this.#created}`)]]),
      body: encodeText(`circuit ${this.#created}`),
    })
  }
}

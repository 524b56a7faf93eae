import { Duplex } from 'node:stream'

import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../src/channel/frame.ts'

const noLimits = {
  frameHeadersBytesMax: 2 ** 24,
  frameHeadersMax: 1000,
  frameBodyBytesMax: 2 ** 28,
}

/** One side of a connection; the test plays the other side. */
export class Pipe extends Duplex {
  readonly #decoder = new FrameDecoder(noLimits)
  readonly sent: ChannelMessage[] = []
  /** While false, written data is not accepted. */
  isRead = true
  #held: (() => void) | null = null
  isReadFrom = true

  constructor() {
    super({ highWaterMark: 1024, allowHalfOpen: false })
  }

  override _read(): void {
    this.isReadFrom = true
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent.push(...this.#decoder.push(chunk).messages)
    if (this.isRead) done()
    else this.#held = done
  }

  /** Accepts the data that was written in the meantime. */
  readOn(): void {
    this.isRead = true
    const done = this.#held
    this.#held = null
    done?.()
  }

  /** Simulates that the other side sends a message. */
  say(message: Partial<ChannelMessage>): void {
    this.push(frameOf(message))
  }

  ofType(contentType: number): ChannelMessage[] {
    return this.sent.filter((message) => message.contentType === contentType)
  }
}

export function frameOf(message: Partial<ChannelMessage>): Buffer {
  const { contentType = 1, sequence = 1, headers = new Map(), body = new Uint8Array() } = message
  return encodeFrame({ contentType, sequence, headers, body })
}

/** Waits until streams have delivered the data that was pushed. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

import type { ChannelMessage } from '../../../src/channel/frame.ts'
import type { XgressDeps } from '../../../src/overlay/circuits/xgress-deps.ts'
import { Xgress } from '../../../src/overlay/circuits/xgress.ts'
import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import { arrivedFrom, ScriptedApplication } from './xgress-pair.ts'

/** Fields of a message that the test sends as the other end. Numbers as in the protocol. */
export interface Told {
  readonly sequence?: number | bigint
  readonly flags?: number
  readonly stamp?: number
  readonly buffered?: number
  readonly sequences?: readonly number[]
  readonly headers?: ReadonlyMap<number, Uint8Array>
  readonly body?: Uint8Array
}

function bytesOf(length: number, write: (bytes: Buffer) => void): Uint8Array {
  const bytes = Buffer.alloc(length)
  write(bytes)
  return bytes
}

/** Builds a message without the code under test. */
function messageOf(contentType: number, told: Told, body: Uint8Array): ChannelMessage {
  const headers = new Map<number, Uint8Array>([[2256, Buffer.from('circuit1')]])
  const { sequence, flags, stamp, buffered } = told
  if (sequence !== undefined) {
    headers.set(
      2257,
      bytesOf(8, (bytes) => bytes.writeBigUInt64LE(BigInt(sequence))),
    )
  }
  if (flags !== undefined) {
    headers.set(
      2258,
      bytesOf(4, (bytes) => bytes.writeUInt32LE(flags)),
    )
  }
  if (buffered !== undefined) {
    headers.set(
      2259,
      bytesOf(4, (bytes) => bytes.writeUInt32LE(buffered)),
    )
  }
  if (stamp !== undefined) {
    headers.set(
      2260,
      bytesOf(2, (bytes) => bytes.writeUInt16LE(stamp)),
    )
  }
  for (const [key, value] of told.headers ?? []) headers.set(key, value)
  return { contentType, sequence: 7, headers, body }
}

export interface Seen {
  readonly type: number
  readonly sequence: number | null
  readonly flags: number
  readonly stamp: number
  readonly buffered: number | null
  readonly sequences: readonly number[]
  readonly body: Uint8Array
  readonly headers: ChannelMessage['headers']
}

/** Decodes a message without the code under test. */
function seenOf({ contentType, headers, body }: ChannelMessage): Seen {
  const at = (key: number): Buffer | null => {
    const value = headers.get(key)
    return value === undefined ? null : Buffer.from(value)
  }
  const isAcknowledgement = contentType === 1101
  return {
    type: contentType,
    sequence: at(2257) === null ? null : Number(at(2257)?.readBigUInt64LE()),
    flags: at(2258)?.readUInt32LE() ?? 0,
    stamp: at(2260)?.readUInt16LE() ?? 0,
    buffered: at(2259)?.readUInt32LE() ?? null,
    sequences: isAcknowledgement
      ? Array.from({ length: body.length / 4 }, (_, k) => Buffer.from(body).readInt32BE(4 * k))
      : [],
    body,
    headers,
  }
}

/** One end of a circuit; the test plays its other end, its router and the clock. */
export class LoneEnd {
  nowMs = 1000
  readonly application = new ScriptedApplication()
  readonly xgress: Xgress
  readonly closed: (readonly [string, boolean])[] = []
  #sent: Seen[] = []
  readonly #side: number

  constructor(isTerminator: boolean, more: Partial<XgressDeps> = {}) {
    this.#side = isTerminator ? 0 : 2
    this.application.finishesAtEnd = false
    this.xgress = new Xgress({
      circuitId: 'circuit1',
      isTerminator,
      options: xgressOptions(),
      application: this.application,
      clock: { monotonicMs: () => this.nowMs },
      onClosed: (reason, endsCircuit) => this.closed.push([reason, endsCircuit]),
      transmit: (message) => {
        this.#sent.push(seenOf(arrivedFrom(message)))
        return 'sent'
      },
      ...more,
    })
    this.application.end = this.xgress
    if (!isTerminator) this.xgress.start()
  }

  /** Messages sent since the last call. */
  sent(): Seen[] {
    const sent = this.#sent
    this.#sent = []
    return sent
  }

  payloads(): Seen[] {
    return this.sent().filter(({ type }) => type === 1100)
  }

  acknowledgements(): Seen[] {
    return this.sent().filter(({ type }) => type === 1101)
  }

  /** The other end sends a payload; flag 2 marks its side, unless the given fields have other flags. */
  payload(sequence: number | bigint, told: Told = {}): void {
    const { flags = 0, body = new Uint8Array(0) } = told
    const more = { ...told, sequence, flags: flags | this.#side }
    this.xgress.receive(messageOf(1100, more, body))
  }

  acknowledge(sequences: readonly number[], told: Told = {}): void {
    const body = bytesOf(4 * sequences.length, (bytes) => {
      for (const [k, sequence] of sequences.entries()) bytes.writeInt32BE(sequence, 4 * k)
    })
    const more = { buffered: 0, ...told, flags: (told.flags ?? 0) | this.#side }
    this.xgress.receive(messageOf(1101, more, body))
  }

  /** Delivers exactly this message, without adding the flag of the side. */
  receive(contentType: number, told: Told, body: Uint8Array = new Uint8Array(0)): void {
    this.xgress.receive(messageOf(contentType, told, body))
  }

  /** Advances the clock by this time, with the ticks of the router's timer. */
  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 100) {
      this.nowMs += Math.min(left, 100)
      this.xgress.tick(this.nowMs)
    }
  }
}

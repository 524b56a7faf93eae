import type { Random } from '../../../src/lib/random.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import type { Tally } from '../tally.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

export interface StreamWorld {
  readonly chance: Random
  readonly tally: Tally
  /** Whether endless streams stop sending and finite ones end. */
  readonly isTrafficOver: boolean
  fail(error: Error): void
  /** Called when a piece arrives at that end. */
  onPiece(end: StreamEnd): void
}

/** Behavior of one end of a circuit. */
export interface Habits {
  /** Words it sends before it finishes; Infinity: it sends while there is traffic. */
  readonly words: number
  readonly wordsAPieceMax: number
  /** Maximum pause between two pieces, ms. */
  readonly pauseMsMax: number
  /** Chance per piece that the reader pauses. */
  readonly restChance: number
}

const WORD_BYTES = 4
const REST_MS_MAX = 400

/**
 * Everything known about one circuit from outside: its ends, and the data that each sent and
 * received.
 */
export class Stream {
  readonly id: string
  readonly number: number
  /** Virtual time at which the controller created the circuit of this stream; null: not created. */
  madeMs: number | null = null
  readonly ends: StreamEnd[] = []

  constructor(id: string, number: number) {
    this.id = id
    this.number = number
  }

  get open(): readonly StreamEnd[] {
    return this.ends.filter(({ isOpen }) => isOpen)
  }

  /**
   * Ends at the other side: a host may have been dialed twice, and only one of these ends is used.
   */
  others(end: StreamEnd): readonly StreamEnd[] {
    return this.ends.filter(({ side }) => side !== end.side)
  }
}

/**
 * The user of one end of a circuit. It sends numbered words that differ in every stream, and
 * compares each received word with the expected one. A missing, repeated, reordered or foreign word
 * is detected immediately (C1).
 */
export class StreamEnd implements CircuitApplication {
  readonly side: 'client' | 'host'
  readonly routerId: string
  readonly stream: Stream
  sent = 0
  received = 0
  hasFinished = false
  isPeerFinished = false
  /** Reason why this end was closed; null: not closed. */
  closed: string | null = null
  /** Whether this end was lost because its router stopped. */
  isLost = false
  readonly #world: StreamWorld
  readonly #habits: Habits
  #end: CircuitEndpoint | null = null
  #isWritable = true

  constructor(
    world: StreamWorld,
    stream: Stream,
    { side, routerId, habits }: { side: StreamEnd['side']; routerId: string; habits: Habits },
  ) {
    this.#world = world
    this.#habits = habits
    this.stream = stream
    this.side = side
    this.routerId = routerId
    stream.ends.push(this)
  }

  get isOpen(): boolean {
    return this.closed === null && !this.isLost
  }

  /** Called in an event of the router that has this endpoint. */
  begin(end: CircuitEndpoint): void {
    this.#end = end
    this.#sendLater()
  }

  close(): void {
    this.#end?.close('the run is over')
  }

  deliver({ body }: PayloadContent): boolean {
    const { number } = this.stream
    const words = new DataView(body.buffer, body.byteOffset, body.length)
    for (let at = 0; at + WORD_BYTES <= body.length; at += WORD_BYTES) {
      const due = wordOf(number, this.side === 'client' ? 'host' : 'client', this.received)
      if (words.getUint32(at) !== due) {
        this.#wrong(`C1: ${this.name} got another word than number ${this.received}`)
        return true
      }
      this.received += 1
    }
    if (this.isPeerFinished) this.#wrong(`C1: ${this.name} got words after the last one`)
    this.#world.onPiece(this)
    if (this.#world.chance.next() >= this.#habits.restChance) return true
    setTimeout(() => this.#end?.resume(), this.#world.chance.integer(1, REST_MS_MAX))
    return false
  }

  /** C2: a clean end comes after all data. */
  onFinished(): void {
    this.isPeerFinished = true
    const others = this.stream.others(this)
    if (others.some(({ hasFinished, sent }) => hasFinished && sent === this.received)) return
    const sent = others.map((one) => `${one.sent}${one.hasFinished ? '' : ' and more to come'}`)
    this.#wrong(`C2: ${this.name} heard the end after ${this.received} words of ${sent.join(', ')}`)
  }

  onWritable(): void {
    this.#isWritable = true
    this.#sendLater()
  }

  onClosed(reason: string): void {
    this.closed = reason
  }

  /** Whether this end sends for as long as there is traffic. */
  get isEndless(): boolean {
    return this.#habits.words === Infinity
  }

  get name(): string {
    return `the ${this.side} of circuit ${this.stream.number} at ${this.routerId}`
  }

  #wrong(message: string): void {
    // The run is failed here, because an error thrown here would only close the circuit.
    this.#world.fail(new Error(message))
  }

  #sendLater(): void {
    setTimeout(() => this.#send(), this.#world.chance.integer(1, this.#habits.pauseMsMax))
  }

  #send(): void {
    const end = this.#end
    if (end === null || !this.isOpen || this.hasFinished || !this.#isWritable) return
    const { words, wordsAPieceMax } = this.#habits
    const { isTrafficOver, chance } = this.#world
    if (this.sent >= words || (isTrafficOver && words !== Infinity)) {
      this.hasFinished = true
      end.finish()
      return
    }
    if (isTrafficOver) return
    const count = Math.min(chance.integer(1, wordsAPieceMax), words - this.sent)
    this.#isWritable = end.send({ body: this.#words(count), edgeFlags: 0, traceId: null })
    if (this.#isWritable) this.#sendLater()
  }

  #words(count: number): Uint8Array {
    const body = new Uint8Array(count * WORD_BYTES)
    const words = new DataView(body.buffer)
    for (let at = 0; at < count; at += 1) {
      words.setUint32(at * WORD_BYTES, wordOf(this.stream.number, this.side, this.sent))
      this.sent += 1
    }
    return body
  }
}

/** Word number `at` of one direction of a stream; no two directions have the same words. */
function wordOf(stream: number, side: StreamEnd['side'], at: number): number {
  const of = Math.imul(stream * 2 + (side === 'host' ? 1 : 0) + 1, 0x9e3779b1)
  return (Math.imul(at + 1, 0x85ebca6b) ^ of) >>> 0
}

import type { ChannelMessage, OutboundMessage } from '../../../src/channel/frame.ts'
import { type Random, seededRandom } from '../../../src/lib/random.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import type { TransmitKind } from '../../../src/overlay/circuits/payload-outbox.ts'
import { Xgress } from '../../../src/overlay/circuits/xgress.ts'
import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

/** How a path treats messages. The fields that are shares apply to each message. */
export interface Weather {
  readonly lost: number
  readonly repeated: number
  /** Share of first payloads that a full link rejects. */
  readonly refused: number
  readonly delayMsMin: number
  /** Messages with different delays overtake each other. */
  readonly delayMsMax: number
}

export const calm: Weather = { lost: 0, repeated: 0, refused: 0, delayMsMin: 1, delayMsMax: 1 }

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

/**
 * Virtual time: events run in the order of their times; events with the same time run in the order
 * of their creation.
 */
export class Timeline {
  nowMs = 1000
  /** The events, as a binary heap. */
  readonly #events: Event[] = []
  #order = 0

  after(delayMs: number, run: () => void): void {
    const event = { atMs: this.nowMs + delayMs, order: (this.#order += 1), run }
    const events = this.#events
    let at = events.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = events[above]
      if (parent === undefined || isBefore(parent, event)) break
      events[at] = parent
      at = above
    }
    events[at] = event
  }

  /** @returns whether the condition became true within the time. */
  runUntil(isDone: () => boolean, msMax: number): boolean {
    const endMs = this.nowMs + msMax
    while (!isDone()) {
      const event = this.#events[0]
      if (event === undefined || event.atMs > endMs) return false
      this.#removeFirst()
      this.nowMs = event.atMs
      event.run()
    }
    return true
  }

  #removeFirst(): void {
    const events = this.#events
    const last = events.pop()
    if (last === undefined || events.length === 0) return
    let at = 0
    for (;;) {
      const [left, right] = [events[2 * at + 1], events[2 * at + 2]]
      if (left === undefined) break
      const isRight = right !== undefined && isBefore(right, left)
      const child = isRight ? right : left
      if (isBefore(last, child)) break
      events[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    events[at] = last
  }

  runFor(ms: number): void {
    const endMs = this.nowMs + ms
    this.runUntil(() => false, ms)
    this.nowMs = endMs
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

/**
 * Application of a test: sends its data when the circuit accepts it, and keeps the received data.
 */
export class ScriptedApplication implements CircuitApplication {
  end: CircuitEndpoint | null = null
  readonly delivered: PayloadContent[] = []
  readonly reasons: string[] = []
  /**
   * Calls that must not occur; it records them because an exception would only close the circuit.
   */
  readonly faults: string[] = []
  isFinished = false
  /** Whether all data has arrived, according to the last report. */
  isWhole: boolean | null = null
  /** Whether the application has reported that it currently accepts no more data. */
  isFull = false
  /** Whether the application accepts more data after this piece. */
  takesMore: (piece: PayloadContent) => boolean = () => true
  finishesAtEnd = true
  #unsent: PayloadContent[] = []
  #mayWrite = true

  write(pieces: readonly PayloadContent[]): void {
    this.#unsent.push(...pieces)
    this.#flush()
  }

  get hasSentAll(): boolean {
    return this.#unsent.length === 0
  }

  deliver(piece: PayloadContent): boolean {
    if (this.reasons.length > 0) this.faults.push('delivered after it was closed')
    if (this.isFinished) this.faults.push('delivered after the end')
    if (this.isFull) this.faults.push('delivered before it resumed')
    this.delivered.push({ ...piece, body: new Uint8Array(piece.body) })
    const takesMore = this.takesMore(piece)
    this.isFull = !takesMore
    return takesMore
  }

  onFinished(): void {
    if (this.isFinished) this.faults.push('finished twice')
    if (this.reasons.length > 0) this.faults.push('finished after it was closed')
    this.isFinished = true
  }

  /** Accepts data again. */
  resume(): void {
    this.isFull = false
    this.end?.resume()
  }

  onWritable(): void {
    if (this.reasons.length > 0) this.faults.push('writable after it was closed')
    this.#mayWrite = true
    this.#flush()
  }

  onClosed(reason: string, isWhole: boolean): void {
    if (this.reasons.length > 0) this.faults.push('closed twice')
    this.reasons.push(reason)
    this.isWhole = isWhole
  }

  #flush(): void {
    const { end } = this
    if (end === null) return
    while (this.#mayWrite) {
      const piece = this.#unsent.shift()
      if (piece === undefined) break
      this.#mayWrite = end.send(piece)
    }
    if (this.#unsent.length === 0 && this.finishesAtEnd) end.finish()
  }
}

interface PairOptions {
  readonly seed?: number
  readonly weather?: Weather
  readonly options?: Readonly<Record<string, unknown>>
  /** Options of the terminator, if they differ. */
  readonly terminatorOptions?: Readonly<Record<string, unknown>>
}

export interface Side {
  readonly xgress: Xgress
  readonly application: ScriptedApplication
  /** Reasons that the router received, and whether the circuit ends for each reason. */
  readonly closed: (readonly [string, boolean])[]
  readonly sent: ChannelMessage[]
  /** Numbers of first payloads, retransmitted payloads and acknowledgments. */
  readonly counts: Record<TransmitKind, number>
  /** Whether a payload was sent for the first time while the window was full. */
  wentOverWindow: boolean
}

/** Two ends of a circuit, and the path between them. */
export class XgressPair {
  readonly time = new Timeline()
  readonly initiator: Side
  readonly terminator: Side
  weather: Weather
  /** If true, messages no longer arrive. */
  isCut = false
  readonly #random: Random

  constructor({ seed = 1, weather = calm, options, terminatorOptions }: PairOptions = {}) {
    this.#random = seededRandom(seed)
    this.weather = weather
    this.initiator = this.#side(false, options ?? {}, () => this.terminator)
    this.terminator = this.#side(true, terminatorOptions ?? options ?? {}, () => this.initiator)
    this.#tick()
  }

  get random(): Random {
    return this.#random
  }

  start(): this {
    this.initiator.xgress.start()
    return this
  }

  #side(
    isTerminator: boolean,
    options: Readonly<Record<string, unknown>>,
    other: () => Side,
  ): Side {
    const application = new ScriptedApplication()
    const closed: [string, boolean][] = []
    const sent: ChannelMessage[] = []
    const counts = { payload: 0, retransmission: 0, acknowledgement: 0 }
    const random = this.#random
    const xgress = new Xgress({
      circuitId: 'circuit1',
      isTerminator,
      options: xgressOptions(options),
      application,
      clock: { monotonicMs: () => this.time.nowMs },
      random: () => random.next(),
      onClosed: (reason, endsCircuit) => closed.push([reason, endsCircuit]),
      transmit: (message, kind) => {
        if (random.next() < this.weather.refused) {
          this.time.after(3, () => xgress.onLinkWritable())
          return 'full'
        }
        counts[kind] += 1
        const bytes = message.body?.length ?? 0
        const before = xgress.inFlightBytes - bytes
        if (kind === 'payload' && bytes > 0 && before > xgress.windowBytes) {
          side.wentOverWindow = true
        }
        const arrived = arrivedFrom(message)
        sent.push(arrived)
        this.#carry(arrived, other)
        return 'sent'
      },
    })
    application.end = xgress
    const side: Side = { xgress, application, closed, sent, counts, wentOverWindow: false }
    return side
  }

  #carry(message: ChannelMessage, to: () => Side): void {
    const { lost, repeated, delayMsMin, delayMsMax } = this.weather
    const arrive = (): void => {
      if (this.isCut) return
      to().xgress.receive(message)
    }
    const delayMs = (): number => this.#random.integer(delayMsMin, delayMsMax)
    if (this.#random.next() >= lost) this.time.after(delayMs(), arrive)
    if (this.#random.next() < repeated) this.time.after(delayMs(), arrive)
  }

  /** The timer of the router, which serves all ends. */
  #tick(): void {
    this.time.after(100, () => {
      this.initiator.xgress.tick(this.time.nowMs)
      this.terminator.xgress.tick(this.time.nowMs)
      this.#tick()
    })
  }
}

export function arrivedFrom({
  contentType,
  headers = new Map(),
  body,
}: OutboundMessage): ChannelMessage {
  return { contentType, sequence: 0, headers, body: body ?? new Uint8Array(0) }
}

/** Bytes that depend on their position, so that the test detects a shifted or repeated piece. */
const source = new Uint8Array(1 << 20).map((_, at) => (at * 2_654_435_761) >>> 13)

export function pieceOf(bytes: number, more: Partial<PayloadContent> = {}): PayloadContent {
  return { body: source.subarray(0, bytes), edgeFlags: 0, traceId: null, ...more }
}

export function randomPieces(random: Random, count: number, bytesMax: number): PayloadContent[] {
  return Array.from({ length: count }, () => {
    const at = random.integer(0, source.length - bytesMax)
    const bytes = random.integer(0, bytesMax)
    const isTraced = random.next() < 0.2
    return {
      body: source.subarray(at, at + bytes),
      edgeFlags: random.next() < 0.2 ? random.integer(1, 31) : 0,
      traceId: isTraced ? source.subarray(at, at + 16) : null,
    }
  })
}

/** Compares without printing a difference, because a difference of bytes is not readable. */
export function areSamePieces(
  some: readonly PayloadContent[],
  others: readonly PayloadContent[],
): boolean {
  if (some.length !== others.length) return false
  return some.every((one, at) => {
    const other = others[at]
    return (
      other !== undefined &&
      one.edgeFlags === other.edgeFlags &&
      Buffer.compare(one.body, other.body) === 0 &&
      Buffer.compare(one.traceId ?? absent, other.traceId ?? absent) === 0
    )
  })
}

const absent = new Uint8Array(0)

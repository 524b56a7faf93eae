import type {
  CircuitApplication,
  CircuitEndpoint,
  LocalCircuit,
  LocalCircuits,
} from '../../src/overlay/circuits/circuit-endpoint.ts'
import type { PayloadContent } from '../../src/channel/messages/payload.ts'

const WAITING_BYTES_MAX = 64 * 1024

/**
 * Circuit endpoints in memory: the first two that are opened with one ID are joined. They fulfill
 * the contract of `circuit-endpoint.ts`, with a queue of some bytes in each direction.
 */
export class JoinedCircuits implements LocalCircuits {
  readonly ends = new Map<string, JoinedEnd[]>()

  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const ends = this.ends.get(circuit.id) ?? []
    const end = new JoinedEnd(circuit.id, application)
    this.ends.set(circuit.id, [...ends, end])
    const [other] = ends
    if (other !== undefined) {
      end.join(other)
      other.join(end)
    }
    return end
  }

  attach(): void {
    throw new Error('no end is kept elsewhere in this test')
  }

  enter(): void {
    throw new Error('no end is kept elsewhere in this test')
  }

  leave(): void {
    throw new Error('no end is kept elsewhere in this test')
  }

  /** The largest number of bytes that have waited in one direction of a circuit. */
  get waitedBytesMax(): number {
    return Math.max(
      0,
      ...[...this.ends.values()].flat().map(({ waitedBytesMax }) => waitedBytesMax),
    )
  }
}

/** Data written here waits until the application at the other end accepts it. */
export class JoinedEnd implements CircuitEndpoint {
  readonly circuitId: string
  isClosed = false
  waitedBytesMax = 0
  readonly application: CircuitApplication
  #other: JoinedEnd | null = null
  #queue: PayloadContent[] = []
  #queuedBytes = 0
  #isBlocked = false
  #isFinished = false
  #isPaused = false
  #isDue = false
  #closing: string | null = null
  #isWhole = true

  constructor(circuitId: string, application: CircuitApplication) {
    this.circuitId = circuitId
    this.application = application
  }

  join(other: JoinedEnd): void {
    this.#other = other
    if (other.isClosed) this.close('the other end is closed')
    this.#flushSoon()
  }

  send(piece: PayloadContent): boolean {
    if (this.isClosed) return true
    this.#queue.push(piece)
    this.#queuedBytes += piece.body.length
    this.waitedBytesMax = Math.max(this.waitedBytesMax, this.#queuedBytes)
    this.#isBlocked = this.#queuedBytes > WAITING_BYTES_MAX
    this.#flushSoon()
    return !this.#isBlocked
  }

  finish(): void {
    this.#isFinished = true
    this.#flushSoon()
  }

  abort(reason: string): void {
    if (this.#other !== null) this.#other.#isWhole = false
    this.#other?.close(reason)
    this.close(reason)
  }

  /** This end accepts pieces of the other end again. */
  resume(): void {
    if (this.#other === null) return
    this.#other.#isPaused = false
    this.#other.#flushSoon()
  }

  close(reason: string): void {
    this.#closing ??= reason
    this.#flushSoon()
  }

  #flushSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#flush()
    })
  }

  #flush(): void {
    const other = this.#other
    while (other !== null && !this.#isPaused) {
      const piece = this.#queue.shift()
      if (piece === undefined) break
      this.#queuedBytes -= piece.body.length
      if (!other.isClosed) this.#isPaused = !other.application.deliver(piece)
    }
    if (this.#isBlocked && this.#queuedBytes <= WAITING_BYTES_MAX / 2) {
      this.#isBlocked = false
      if (!this.isClosed) this.application.onWritable()
    }
    const isTaken = this.#queue.length === 0 || other === null || other.isClosed
    if (!isTaken) return
    if (other !== null && (this.#isFinished || this.#closing !== null)) {
      this.#isFinished = false
      if (!other.isClosed && other.#isWhole) other.application.onFinished()
    }
    if (this.#closing === null || this.isClosed) return
    this.isClosed = true
    this.application.onClosed(this.#closing, this.#isWhole)
    other?.close(this.#closing)
  }
}

import type {
  CircuitApplication,
  CircuitEndpoint,
  FrameDestination,
  LocalCircuit,
  LocalCircuits,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import type { TraceRequest } from '../../../src/channel/messages/route-trace.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

/** An end of a circuit whose other end the test plays. */
export class TestEnd implements CircuitEndpoint {
  readonly circuit: LocalCircuit
  readonly application: CircuitApplication
  readonly sent: PayloadContent[] = []
  readonly traced: TraceRequest[] = []
  isClosed = false
  closedReason = ''
  /** Whether the application accepts more data. */
  takes = true
  isBlocked = false
  /** Data for the application, which receives it when it accepts more. */
  readonly #pending: PayloadContent[] = []

  constructor(circuit: LocalCircuit, application: CircuitApplication) {
    this.circuit = circuit
    this.application = application
  }

  get circuitId(): string {
    return this.circuit.id
  }

  get texts(): string[] {
    return this.sent.map(({ body }) => Buffer.from(body).toString())
  }

  get pendingCount(): number {
    return this.#pending.length
  }

  send(piece: PayloadContent): boolean {
    if (!this.isClosed) this.sent.push(piece)
    return this.takes
  }

  trace(request: TraceRequest): void {
    this.traced.push(request)
  }

  finish(): void {
    this.isClosed = true
  }

  abort(reason: string): void {
    this.close(reason)
  }

  resume(): void {
    this.isBlocked = false
    this.#deliver()
  }

  close(reason: string): void {
    if (this.isClosed) return
    this.isClosed = true
    this.closedReason = reason
  }

  /** Delivers data as if from the other end. */
  arrive(body: string | Uint8Array, edgeFlags = 0, traceId: Uint8Array | null = null): void {
    const bytes = typeof body === 'string' ? Uint8Array.from(Buffer.from(body)) : body
    this.#pending.push({ body: bytes, edgeFlags, traceId })
    this.#deliver()
  }

  #deliver(): void {
    while (!this.isBlocked) {
      const piece = this.#pending.shift()
      if (piece === undefined) return
      this.isBlocked = !this.application.deliver(piece)
    }
  }
}

/** Circuit ends whose other ends the test plays. */
export class TestCircuits implements LocalCircuits {
  readonly ends: TestEnd[] = []
  readonly attached: { readonly circuit: LocalCircuit; readonly destination: FrameDestination }[] =
    []
  readonly entered: { readonly circuit: LocalCircuit; readonly message: ChannelMessage }[] = []
  readonly left: { readonly circuit: LocalCircuit; readonly reason: string }[] = []

  end(circuitId: string): TestEnd {
    const found = this.ends.findLast((end) => end.circuitId === circuitId)
    if (found === undefined) throw new Error(`no end of ${circuitId}`)
    return found
  }

  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const end = new TestEnd(circuit, application)
    this.ends.push(end)
    return end
  }

  attach(circuit: LocalCircuit, destination: FrameDestination): void {
    this.attached.push({ circuit, destination })
  }

  enter(circuit: LocalCircuit, message: ChannelMessage): void {
    this.entered.push({ circuit, message })
  }

  leave(circuit: LocalCircuit, reason: string): void {
    this.left.push({ circuit, reason })
  }
}

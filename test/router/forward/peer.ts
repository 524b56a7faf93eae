import { createHash } from 'node:crypto'

import type {
  CircuitApplication,
  CircuitEndpoint,
  TerminatorDialer,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import type { Forwarder } from '../../../src/router/forward/forwarder.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

/** Sends its data when there is room, and keeps a digest of the received data. */
export class Peer implements CircuitApplication {
  readonly digest = createHash('sha256')
  bytes = 0
  isFinished = false
  closed: string | null = null
  isWhole: boolean | null = null
  end: CircuitEndpoint | null = null
  /** Called with the number of bytes received so far. */
  onBytes: (bytes: number) => void = () => undefined
  #rest: Buffer = Buffer.alloc(0)
  #isFinishing = false

  send(data: Buffer): void {
    this.#rest = data
    this.#isFinishing = true
    this.onWritable()
  }

  onWritable(): void {
    while (this.#rest.length > 0) {
      const body = this.#rest.subarray(0, 10_240)
      this.#rest = this.#rest.subarray(body.length)
      if (this.end?.send({ body, edgeFlags: 0, traceId: null }) !== true) return
    }
    if (this.#isFinishing) this.end?.finish()
    this.#isFinishing = false
  }

  deliver({ body }: PayloadContent): boolean {
    this.digest.update(body)
    this.bytes += body.length
    this.onBytes(this.bytes)
    return true
  }

  onFinished(): void {
    this.isFinished = true
  }

  onClosed(reason: string, isWhole: boolean): void {
    this.closed = reason
    this.isWhole = isWhole
  }
}

/** The application at the host, for the one circuit that is dialed there. */
export function hostAt(forwarder: Forwarder): Peer {
  const host = new Peer()
  const dialer: TerminatorDialer = {
    dial: (request) => {
      host.end = forwarder.open(request.circuit, host)
      return Promise.resolve(new Map())
    },
  }
  forwarder.registerDialer('test', dialer)
  return host
}

export function digestOf(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

import type { ProcessorShare } from '../../../lib/bounds/processor-share.ts'
import type { Clock } from '../../../lib/clock.ts'

/** The caller of the latest request on a connection. */
interface LastCaller {
  readonly sharer: string
  /** Unparsed headers that, together with the connection, determine the caller of the request. */
  readonly session: unknown
  readonly sessionAlias: unknown
  readonly authorization: unknown
  /**
   * Time since which the next request on the connection waits for processor time, monotonic ms;
   * null if no request waits.
   */
  waitsSinceMs: number | null
}

/**
 * The caller that each connection's next request probably has, known before the request is
 * authenticated: the caller of the previous request, if both have the same credentials. So all work
 * on the request, beginning with routing, counts against the caller's share of processor time.
 * Otherwise a caller that has used up its share could still make this thread read and authenticate
 * one request per connection in each turn of the event loop.
 */
export class ConnectionCallers {
  readonly #processor: ProcessorShare
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #last = new WeakMap<Socket, LastCaller>()

  constructor(processor: ProcessorShare, clock: Pick<Clock, 'monotonicMs'>) {
    this.#processor = processor
    this.#clock = clock
  }

  /**
   * Runs the task immediately, or later if the caller has used up its share of processor time.
   * Drops a waiting task if the client disconnects.
   */
  begin(request: IncomingMessage, task: () => void): void {
    const { socket } = request
    const last = this.#last.get(socket)
    // @guard requests-of-one-caller--judged
    if (last === undefined || !isShownBy(request, last)) {
      task()
      return
    }
    const own = (): void => {
      if (!socket.destroyed) task()
    }
    try {
      const hasToWait = this.#processor.run(last.sharer, own)
      if (hasToWait) last.waitsSinceMs = this.#clock.monotonicMs()
    } catch {
      // Too many requests of this caller wait. The task runs immediately, and will refuse the
      // request with the usual error envelope.
      task()
    }
  }

  /** Time since which this request has waited, monotonic ms; null if it did not wait. */
  takeWait({ socket }: IncomingMessage): number | null {
    const last = this.#last.get(socket)
    if (last === undefined) return null
    const { waitsSinceMs } = last
    last.waitsSinceMs = null
    return waitsSinceMs
  }

  /**
   * Records the caller of a request. Call it once the session is checked; a caller without a
   * session is recorded by its source.
   */
  know(request: IncomingMessage, sharer: string): void {
    const last = this.#last.get(request.socket)
    if (last?.sharer === sharer && isShownBy(request, last)) return
    const { headers } = request
    this.#last.set(request.socket, {
      sharer,
      session: headers['net-session'],
      sessionAlias: headers['zt-session'],
      authorization: headers.authorization,
      waitsSinceMs: null,
    })
  }
}

function isShownBy({ headers }: IncomingMessage, last: LastCaller): boolean {
  return (
    headers['zt-session'] === last.sessionAlias &&
    headers['net-session'] === last.session &&
    headers.authorization === last.authorization
  )
}

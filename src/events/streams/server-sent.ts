import type { ServerResponse } from 'node:http'

import { positionText } from '../../ports/events.ts'
import type { EventPosition } from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import { eventLimits } from '../limits.ts'
import type { StreamOutput } from './event-stream.ts'

/**
 * Server-sent events (HTML standard, 9.2). Each has the id by which its client resumes; a gap and the end are events of these
 * names. A heartbeat is a comment that brings the id along, so that a quiet client does not fall behind.
 */
export class ServerSentEvents implements StreamOutput {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Where the stream begins. */
  ready(controllerId: string, at: EventPosition): void {
    this.#send('ready', { controller: controllerId }, positionText(at))
  }

  event(event: EmittedEvent): boolean {
    return this.#response.write(`id: ${positionText(event.position)}\ndata: ${event.text}\n\n`)
  }

  gap(from: EventPosition, to: EventPosition): boolean {
    const [first, last] = [positionText(from), positionText(to)]
    return this.#send('gap', { from: first, to: last }, last)
  }

  heartbeat(at: EventPosition): boolean {
    return this.#response.write(`: heartbeat\nid: ${positionText(at)}\n\n`)
  }

  close(reason: string): void {
    const response = this.#response
    this.#send('closed', { reason }, null)
    response.end()
    const timer = setTimeout(() => response.socket?.destroy(), eventLimits.eventLingerMs)
    response.once('close', () => clearTimeout(timer))
  }

  #send(name: string, data: Readonly<Record<string, string>>, id: string | null): boolean {
    const idLine = id === null ? '' : `id: ${id}\n`
    return this.#response.write(`event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`)
  }
}

import type { ByteStream } from '../../ports/byte-stream.ts'
import { type EventPosition, positionText } from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import { eventLimits } from '../limits.ts'
import type { StreamOutput } from './event-stream.ts'
import { TextPipe } from './text-pipe.ts'

/**
 * Server-sent events (HTML standard, 9.2). The id of each is the position at which its client can
 * resume. A gap and the end are events with these names. A heartbeat is a comment with an id, so
 * that the position of the client also advances without events.
 */
export class ServerSentEvents implements StreamOutput, ByteStream {
  /** The client has read, so more can be written. */
  onDrain: () => void = () => undefined
  /** The client no longer reads. */
  onGone: () => void = () => undefined
  readonly chunks = new TextPipe(eventLimits.eventStreamCharactersMax, {
    onTaken: () => this.onDrain(),
    onReturned: () => this.#end(),
  })
  readonly #linger = new AbortController()
  #timer: NodeJS.Timeout | undefined

  get giveUp(): AbortSignal {
    return this.#linger.signal
  }

  /** Sends the position at which the stream begins. */
  ready(controllerId: string, at: EventPosition): void {
    this.#send('ready', { controller: controllerId }, positionText(at))
  }

  event(event: EmittedEvent): boolean {
    return this.chunks.write(`id: ${positionText(event.position)}\ndata: ${event.text}\n\n`)
  }

  gap(from: EventPosition, to: EventPosition): boolean {
    const [first, last] = [positionText(from), positionText(to)]
    return this.#send('gap', { from: first, to: last }, last)
  }

  heartbeat(at: EventPosition): boolean {
    return this.chunks.write(`: heartbeat\nid: ${positionText(at)}\n\n`)
  }

  close(reason: string): void {
    this.#send('closed', { reason }, null)
    this.chunks.end()
    this.#timer = setTimeout(() => this.#linger.abort(), eventLimits.eventLingerMs)
  }

  #send(name: string, data: Readonly<Record<string, string>>, id: string | null): boolean {
    const idLine = id === null ? '' : `id: ${id}\n`
    return this.chunks.write(`event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`)
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.onGone()
  }
}

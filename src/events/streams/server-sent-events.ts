import type { ByteStream } from '../../ports/byte-stream.ts'
import { type EventPosition, positionText } from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import { eventLimits } from '../limits.ts'
import type { EventStreamOutput } from './event-stream.ts'
import { TextToByteStream } from './text-to-byte-stream.ts'

/**
 * Server-sent events (HTML standard, 9.2). The id of an event is the position at which the client
 * can resume. The start of the stream, a gap and the end of the stream are events with separate
 * names. A heartbeat is a comment with an id, so that the client's position advances even without
 * events.
 */
export class ServerSentEvents implements EventStreamOutput, ByteStream {
  /** Called after the client has read, when more can be written. */
  onDrain: () => void = () => undefined
  /** Called when the client no longer reads. */
  onGone: () => void = () => undefined
  readonly chunks = new TextToByteStream(eventLimits.eventStreamCharactersMax, {
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

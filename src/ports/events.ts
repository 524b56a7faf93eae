import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { TextPattern } from '../lib/text/text-pattern.ts'
import type { ByteStream } from './byte-stream.ts'
import type { NetworkValidations } from './network-validations.ts'

/**
 * Callers that may read the events of a namespace. Only administrators may read events about
 * records and people, as with the records themselves. The program does not compile without an entry
 * for each namespace.
 */
const readers: Readonly<Record<EventNamespace, 'administrators' | 'ops.read'>> = {
  accessEnd: 'administrators',
  alert: 'ops.read',
  apiSession: 'administrators',
  authentication: 'administrators',
  circuit: 'ops.read',
  cluster: 'ops.read',
  connect: 'ops.read',
  entityChange: 'administrators',
  entityCount: 'administrators',
  link: 'ops.read',
  metrics: 'ops.read',
  router: 'ops.read',
  sdk: 'ops.read',
  service: 'ops.read',
  session: 'administrators',
  terminator: 'ops.read',
  usage: 'ops.read',
}

/** Namespaces that only administrators may read. */
export const RECORD_NAMESPACES: ReadonlySet<EventNamespace> = new Set(
  EVENT_NAMESPACES.filter((namespace) => readers[namespace] === 'administrators'),
)

/**
 * Position of an event among all events of a controller. An event that follows from the log has the
 * index of its entry, and a sequence that counts from 1 within the entry; this position is the same
 * on every controller. An event that one controller observes has the last applied index, and a
 * unique sequence above those of log events.
 */
export interface EventPosition {
  readonly generation: number
  readonly index: number
  readonly sequence: number
}

const POSITION = /^([0-9]{1,15}):([0-9]{1,15}):([0-9]{1,16})(?:@[A-Za-z0-9._-]{1,64})?$/

/** The id of an event, after which a subscriber can resume: `generation:index:sequence`. */
export function positionText({ generation, index, sequence }: EventPosition): string {
  return `${generation}:${index}:${sequence}`
}

/**
 * Parses `<generation>:<index>:<sequence>`, optionally with `@` and the name of a controller; null
 * for any other string.
 */
export function parsePosition(text: string): EventPosition | null {
  const match = POSITION.exec(text)
  if (match === null) return null
  const [generation = 0, index = 0, sequence = 0] = match.slice(1, 4).map(Number)
  return { generation, index, sequence }
}

/** Compares two positions; negative when `a` comes first. */
export function comparePositions(a: EventPosition, b: EventPosition): number {
  return a.generation - b.generation || a.index - b.index || a.sequence - b.sequence
}

/** The events that a reader receives. */
export interface EventFilter {
  readonly namespaces: ReadonlySet<EventNamespace>
  /** Names of the metrics that the reader receives, and of their sources; null: all. */
  readonly metrics: TextPattern | null
  readonly sources: TextPattern | null
  /** Types of entity changes that the reader receives; null: all types. */
  readonly entityTypes: ReadonlySet<string> | null
}

/** A reader of events over HTTP. */
export interface EventReader {
  /** Id of the identity that reads. The number of streams is limited for each identity. */
  readonly identityId: string
  readonly filter: EventFilter
  /** The reader resumes after this event; null: it begins with the next event. */
  readonly after: EventPosition | null
  /**
   * Called repeatedly while the stream is open. Returns the reason why the reader may read no
   * longer, or null.
   */
  readonly refusal: () => string | null
}

/** The streams of events of this controller. */
export interface EventStreams {
  /**
   * Whether the identity may open another stream.
   * @returns false when the identity, or all identities together, have the maximum number of
   * streams.
   */
  hasRoomFor(identityId: string): boolean
  /**
   * Opens a stream of server-sent events. The stream counts toward the limits until its iterator
   * returns.
   */
  open(reader: EventReader): ByteStream
  /**
   * Opens a WebSocket whose HTTP request the API has admitted. It carries OpenZiti's management
   * channel, over which the client subscribes to events.
   * @param permits returns true for namespaces that the caller may read.
   * @param validations the validations that the caller may request.
   */
  upgrade(
    upgrade: {
      readonly request: IncomingMessage
      readonly socket: Duplex
      /** Bytes that the client has sent after the head of its request. */
      readonly head: Buffer
    },
    reader: Omit<EventReader, 'after' | 'filter'>,
    permits: (namespace: EventNamespace) => boolean,
    validations: NetworkValidations,
  ): void
  /** Names of the kinds of records that have entity change events. */
  readonly entityTypes: readonly string[]
  /**
   * Number of events dropped before they reached the event file, standard output or the reader of a
   * stream.
   */
  readonly lost: number
}

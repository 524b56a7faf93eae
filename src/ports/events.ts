import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { TextPattern } from '../lib/text/text-pattern.ts'
import type { ByteStream } from './byte-stream.ts'
import type { NetworkValidations } from './network-validations.ts'

/**
 * Callers that may read the events of a namespace. Events with records and people are for
 * administrators, as the records are. The table is total, so that a new namespace does not compile
 * without an entry.
 */
const readers: Readonly<Record<EventNamespace, 'administrators' | 'ops.read'>> = {
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

/** Namespaces for administrators alone. */
export const RECORD_NAMESPACES: ReadonlySet<EventNamespace> = new Set(
  EVENT_NAMESPACES.filter((namespace) => readers[namespace] === 'administrators'),
)

/**
 * Position of an event among all events of a controller. An event that follows from the log has the
 * index of its entry, and a sequence that counts from 1 within the entry; it is the same on every
 * controller. An event that one controller observes has the last applied index, and a unique
 * sequence above those of log events.
 */
export interface EventPosition {
  readonly generation: number
  readonly index: number
  readonly sequence: number
}

const POSITION = /^([0-9]{1,15}):([0-9]{1,15}):([0-9]{1,16})(?:@[A-Za-z0-9._-]{1,64})?$/

export function positionText({ generation, index, sequence }: EventPosition): string {
  return `${generation}:${index}:${sequence}`
}

/**
 * Reads `<generation>:<index>:<sequence>`, perhaps with `@` and the name of a controller; null when
 * it is none.
 */
export function parsePosition(text: string): EventPosition | null {
  const match = POSITION.exec(text)
  if (match === null) return null
  const [generation = 0, index = 0, sequence = 0] = match.slice(1, 4).map(Number)
  return { generation, index, sequence }
}

/** Negative when `a` comes first. */
export function comparePositions(a: EventPosition, b: EventPosition): number {
  return a.generation - b.generation || a.index - b.index || a.sequence - b.sequence
}

/** Events that a reader wants. */
export interface EventFilter {
  readonly namespaces: ReadonlySet<EventNamespace>
  /** Names of metrics, and of what they are of; null: all. */
  readonly metrics: TextPattern | null
  readonly sources: TextPattern | null
  /** Types of entity changes; null: all. */
  readonly entityTypes: ReadonlySet<string> | null
}

/** Somebody who reads events over HTTP. */
export interface EventReader {
  /** Streams are counted by it: the id of an identity. */
  readonly identityId: string
  readonly filter: EventFilter
  /** Event that it has seen last; null: it begins with what comes. */
  readonly after: EventPosition | null
  /** Asked now and then: why it may read no further, or null. */
  readonly refusal: () => string | null
}

/** The streams of events of this controller. */
export interface EventStreams {
  /** @returns false when there are as many as there may be, of that identity or in all. */
  hasRoomFor(identityId: string): boolean
  /** Server-sent events. It has its place among the streams until its iterator is returned. */
  open(reader: EventReader): ByteStream
  /**
   * A web socket whose request was admitted: the management channel of the API family, over which
   * its client names what it wants.
   * @param permits which of the namespaces asked for its caller may see.
   * @param validations that its caller may ask for.
   */
  upgrade(
    upgrade: {
      readonly request: IncomingMessage
      readonly socket: Duplex
      /** Bytes that its client has sent already. */
      readonly head: Buffer
    },
    reader: Omit<EventReader, 'after' | 'filter'>,
    permits: (namespace: EventNamespace) => boolean,
    validations: NetworkValidations,
  ): void
  /** Names of the kinds of records that have entity change events. */
  readonly entityTypes: readonly string[]
  /** Dropped because a file or a reader was too slow. */
  readonly lost: number
}

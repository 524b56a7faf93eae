import type { AccessEnd, AccessExpiryNotice } from '../entities/kinds/access-end.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { ApiSession } from '../entities/kinds/api-session.ts'
import type { Session } from '../entities/kinds/session.ts'
import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { AuditRecord } from '../ports/audit.ts'
import type { RecordChange } from '../ports/change-feed.ts'
import type { EventFilter, EventPosition } from '../ports/events.ts'
import { EmittedEvent, type EventRingSlot } from './emitted-event.ts'
import type { EventRingLimits } from './event-ring.ts'
import type { NewEvent } from './event-field.ts'
import { eventSubjects } from './namespaces.ts'
import { publishedKinds, approximateRecordCharacters } from './published-records.ts'
import { accessEndEvent } from './subjects/access-end.ts'
import { apiSessionEvent } from './subjects/api-session.ts'
import { loggedInEvent } from './subjects/authentication.ts'
import { entityChangeEvents } from './subjects/entity-change.ts'
import { sessionEvent } from './subjects/session.ts'

/**
 * The changes in a log entry, recorded when the entry is applied, because a later entry may
 * overwrite some of the values.
 */
interface EntryChanges {
  readonly index: number
  readonly timeMs: number
  readonly audit: AuditRecord | null
  readonly changes: readonly RecordChange[]
  /**
   * For each API session that the entry created: the auth policy of its identity. Recorded with the
   * entry, because a later entry may change the identity's auth policy.
   */
  readonly policyIds: ReadonlyMap<string, string>
}

/** Identifies the controller that emits the events. */
interface EventSource {
  readonly generation: number
  readonly selfId: string
}

/**
 * If an entry has more events than this, each event gets its own slot, so that the limits of the
 * ring apply to single events.
 */
const EVENTS_IN_SLOT_MAX = 256
/**
 * Each event of an entry also gets its own slot if the entry would need more than 1/`SHARE_OF_RING`
 * of the ring's bytes.
 */
const SHARE_OF_RING = 8
const SESSION_WEIGHT = 256
const LOG_IN_WEIGHT = 384
const NOTICE_WEIGHT = 384
/**
 * Number of events of the namespace `entityChange` for one published change: the change and its
 * commit.
 */
const CHANGE_EVENTS = 2

type RecordEvent = (record: RecordChange['after'], entry: EntryChanges) => NewEvent

interface RecordEvents {
  readonly created: readonly RecordEvent[]
  readonly deleted: readonly RecordEvent[]
}

function sessionChanged(type: 'created' | 'deleted'): RecordEvent {
  return (record, { timeMs }) => sessionEvent(type, record as Session, timeMs)
}

function apiSessionChanged(type: 'created' | 'deleted'): RecordEvent {
  return (record, { timeMs }) => apiSessionEvent(type, record as ApiSession, timeMs)
}

const logIn: RecordEvent = (record, { timeMs, policyIds }) => {
  const session = record as ApiSession
  return loggedInEvent(session, policyIds.get(session.id) ?? '', timeMs)
}

/** Events for changes of certain kinds of records, in order, in addition to `entityChange`. */
const recordEvents: ReadonlyMap<string, RecordEvents> = new Map([
  ['session', { created: [sessionChanged('created')], deleted: [sessionChanged('deleted')] }],
  [
    'apiSession',
    {
      created: [apiSessionChanged('created'), logIn],
      deleted: [apiSessionChanged('deleted')],
    },
  ],
])
const noEvents: readonly RecordEvent[] = []
/** Namespaces of events that follow from the log and that every controller therefore emits. */
const namespaces: ReadonlySet<EventNamespace> = new Set(
  EVENT_NAMESPACES.filter((one) =>
    eventSubjects[one].types.some(({ emitter }) => emitter === 'every'),
  ),
)
const kindOrder = new Map(publishedKinds.map((kind, at) => [kind, at]))

/**
 * All events of one log entry in a single slot. The events are created when the first reader needs
 * one of them, because no client reads the events of most entries. The events depend only on the
 * data in this object, so the time of their creation does not matter.
 */
export class EntryEvents implements EventRingSlot {
  readonly count: number
  readonly weight: number
  readonly #source: EventSource
  readonly #index: number
  #entry: EntryChanges | null
  #events: readonly EmittedEvent[] = []

  constructor(source: EventSource, entry: EntryChanges) {
    this.#source = source
    this.#index = entry.index
    this.#entry = entry
    let [count, weight] = [0, 0]
    for (const change of entry.changes) {
      const notices = noticesOf(change)
      count += notices.length
      weight += notices.length * NOTICE_WEIGHT
      const own = eventsOf(change)
      if (own === null) continue
      count += CHANGE_EVENTS + own.length
      weight +=
        sessionWeight(own.length) +
        approximateRecordCharacters(change.before) +
        approximateRecordCharacters(change.after)
    }
    this.count = count
    this.weight = weight
  }

  get position(): EventPosition {
    return this.#positionAt(this.count - 1)
  }

  /** The ring slots for the entry: one, or one for each event of a large entry. */
  slots({ eventBytesKeptMax }: EventRingLimits): readonly EventRingSlot[] {
    if (this.count === 0) return []
    const isLarge =
      this.count > EVENTS_IN_SLOT_MAX || this.weight > eventBytesKeptMax / SHARE_OF_RING
    return isLarge ? this.events() : [this]
  }

  mayBeFor(filter: EventFilter): boolean {
    return !namespaces.isDisjointFrom(filter.namespaces)
  }

  at(offset: number): EmittedEvent | undefined {
    return this.events()[offset]
  }

  seenAt({ generation, index, sequence }: EventPosition): number {
    return generation === this.#source.generation && index === this.#index ? sequence : 0
  }

  /** Events of the log entry, in the order in which the controller emits them. */
  events(): readonly EmittedEvent[] {
    const entry = this.#entry
    if (entry === null) return this.#events
    const made = newEventsOf(entry, (at) => this.#positionAt(at))
    const { selfId } = this.#source
    this.#events = made.map(
      (event, at) => new EmittedEvent(event, this.#positionAt(at), true, selfId),
    )
    this.#entry = null
    return this.#events
  }

  #positionAt(offset: number): EventPosition {
    const { generation } = this.#source
    return { generation, index: this.#index, sequence: offset + 1 }
  }
}

/**
 * The order of an entry's events: first all changes, then the commit of each change, then the
 * additional events for the kinds of the changed records, and last the notices about expiring
 * access.
 */
function newEventsOf(
  entry: EntryChanges,
  positionAt: (at: number) => EventPosition,
): readonly NewEvent[] {
  // The changes are sorted by kind, because their order in the state's change feed depends on when
  // each kind was first subscribed to, and that may differ between controllers.
  const changes = entry.changes.filter((one) => eventsOf(one) !== null).toSorted(byKind)
  const made = changes.map((change, at) => entityChangeEvents(change, entry, positionAt(at)))
  return [
    ...made.map(({ changed }) => changed),
    ...made.map(({ committed }) => committed),
    ...changes.flatMap((change) =>
      (eventsOf(change) ?? []).map((make) => make(change.after ?? change.before, entry)),
    ),
    ...entry.changes.flatMap((change) =>
      noticesOf(change).map((notice) => accessEndEvent(notice, entry.timeMs)),
    ),
  ]
}

/** Notices about access that expires soon, or that expired with this entry. */
function noticesOf(change: RecordChange): readonly AccessExpiryNotice[] {
  return change.kind === 'accessEnd' ? ((change.after as AccessEnd | undefined)?.notices ?? []) : []
}

function byKind(a: RecordChange, b: RecordChange): number {
  return (kindOrder.get(a.kind) ?? 0) - (kindOrder.get(b.kind) ?? 0)
}

/**
 * @returns the additional events for a change, besides `entityChange`; null if the change causes
 * neither. Notices about expiring access are separate, see `noticesOf`.
 */
function eventsOf(change: RecordChange): readonly RecordEvent[] | null {
  const { kind, before, after } = change
  if (kind === 'accessEnd') return null
  if (before !== undefined && after !== undefined) return isActivityAlone(change) ? null : noEvents
  return recordEvents.get(kind)?.[after === undefined ? 'deleted' : 'created'] ?? noEvents
}

function sessionWeight(count: number): number {
  if (count === 0) return 0
  return count === 1 ? SESSION_WEIGHT : SESSION_WEIGHT + LOG_IN_WEIGHT
}

/**
 * True if only fields have changed that need no event: controllers write these fields in batches,
 * or when a session ends.
 */
function isActivityAlone({ kind, before, after }: RecordChange): boolean {
  const fields = activityFields[kind]
  if (fields === undefined || before === undefined || after === undefined) return false
  for (const name in { ...before, ...after }) {
    if (fields.has(name)) continue
    if (before[name] !== after[name]) return false
  }
  return true
}

const activityFields: Readonly<Partial<Record<KindName, ReadonlySet<string>>>> = {
  apiSession: new Set(['lastActivityAt', 'updatedAt', 'revision']),
  identity: new Set(['lastSeenAt']),
  router: new Set(['onlineSince', 'offlineSince']),
}

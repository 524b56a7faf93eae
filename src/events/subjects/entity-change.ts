import type { AuditRecord } from '../../ports/audit.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { type EventPosition, positionText } from '../../ports/events.ts'
import {
  toPublishedRecord,
  entityTypeName,
  approximateRecordCharacters,
} from '../published-records.ts'
import type { EventFields, EventSubject, NewEvent } from '../event-field.ts'

export const entityChangeSubject: EventSubject = {
  namespace: 'entityChange',
  aliases: [],
  about: 'A record was created, changed or deleted.',
  typeField: 'eventType',
  types: [
    { name: 'created', emitter: 'every', when: 'a record was created' },
    { name: 'updated', emitter: 'every', when: 'a record was changed' },
    { name: 'deleted', emitter: 'every', when: 'a record was deleted' },
    {
      name: 'committed',
      emitter: 'every',
      when: 'one event for each change, after the events of all changes in the same log entry',
    },
  ],
  fields: [
    { name: 'eventType', type: 'string', meaning: 'Type of the event, from the table above.' },
    {
      name: 'eventId',
      type: 'string',
      meaning: 'ID of the change; the event `committed` has the same ID.',
    },
    {
      name: 'entityType',
      type: 'string',
      meaning: 'Kind of the record, in the plural.',
      isOptional: true,
    },
    {
      name: 'isParentEvent',
      type: 'boolean',
      meaning: 'Always false: each change is emitted once.',
      isOptional: true,
    },
    {
      name: 'initialState',
      type: 'object',
      meaning: 'The record before the change, without its secrets.',
      isOptional: true,
    },
    {
      name: 'finalState',
      type: 'object',
      meaning: 'The record after the change, without its secrets.',
      isOptional: true,
    },
    {
      name: 'metadata',
      type: 'object',
      meaning:
        '`author` {`type`, `id`, `name`}, `source` {`type`, `auth`, `localAddr`, `remoteAddr`, `method`} (`auth` and `localAddr` are always empty), `raft_index`.',
      isOptional: true,
    },
  ],
}

/** Index, time and audit record of the log entry that changed the records. */
interface ChangedEntry {
  readonly index: number
  readonly timeMs: number
  readonly audit: AuditRecord | null
}

/**
 * Two events: the change, and its commit. Their text is created only when the first reader needs
 * it.
 * @param position position of the change.
 */
export function entityChangeEvents(
  change: RecordChange,
  entry: ChangedEntry,
  position: EventPosition,
): { readonly changed: NewEvent; readonly committed: NewEvent } {
  const about = entityTypeName(change.kind)
  return {
    changed: {
      namespace: 'entityChange',
      atMs: entry.timeMs,
      about,
      weight:
        approximateRecordCharacters(change.before) + approximateRecordCharacters(change.after),
      fields: () => fieldsOf(change, entry, positionText(position)),
    },
    committed: {
      namespace: 'entityChange',
      atMs: entry.timeMs,
      about,
      weight: 0,
      fields: () => ({ eventType: 'committed', eventId: positionText(position) }),
    },
  }
}

function fieldsOf(change: RecordChange, entry: ChangedEntry, eventId: string): EventFields {
  const { kind, before, after } = change
  return {
    eventType: before === undefined ? 'created' : after === undefined ? 'deleted' : 'updated',
    eventId,
    entityType: entityTypeName(kind),
    isParentEvent: false,
    ...(before === undefined ? {} : { initialState: toPublishedRecord(kind, before) }),
    ...(after === undefined ? {} : { finalState: toPublishedRecord(kind, after) }),
    metadata: metadataOf(entry),
  }
}

function metadataOf({ audit, index }: ChangedEntry): EventFields {
  const actor = audit?.actor ?? ''
  const name = audit?.actorName ?? ''
  const type = actor === '' ? 'unattributed' : authorType(actor)
  return {
    author: { type, id: actor.replace(/^controller:/, ''), name },
    source: {
      type: audit?.session === '' || audit === null ? 'ctrl.channel' : 'rest',
      auth: '',
      localAddr: '',
      remoteAddr: audit?.address ?? '',
      method: audit?.action ?? '',
    },
    raft_index: index,
  }
}

function authorType(actor: string): string {
  if (actor.startsWith('controller:')) return 'controller'
  return actor.startsWith('router:') ? 'router' : 'identity'
}

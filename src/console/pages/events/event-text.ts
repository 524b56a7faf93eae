import type { NetworkEvent } from '../../client/event-feed.ts'
import type { BadgeTone } from '../../controls/badge-tone.ts'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { fieldLabel } from '../records/form-model.ts'
import { findKindAtPath } from '../records/kinds.ts'

/**
 * The type of an event, such as `created` or `peer.connected`. Which field contains the type
 * depends on the namespace.
 */
export function eventTypeName({ fields }: NetworkEvent): string {
  for (const name of ['event_type', 'eventType', 'type']) {
    const value = fields[name]
    if (typeof value === 'string') return value
  }
  return ''
}

/** Whether a router reported the alert. The alarms of controllers have the same namespace. */
function isRouterAlert({ namespace, fields }: NetworkEvent): boolean {
  return namespace === 'alert' && fields['alert_source_type'] === 'router'
}

/**
 * The entry for a value of an event. Events contain texts that routers choose, so a value such as
 * `__proto__` must not find an inherited property.
 */
function ownText<T>(entries: Readonly<Record<string, T>>, value: unknown): T | undefined {
  const name = String(value)
  return Object.hasOwn(entries, name) ? entries[name] : undefined
}

/** The type of an event, in words. */
export function eventTypeText(event: NetworkEvent): string {
  const { events } = pageTexts
  const type = eventTypeName(event)
  if (event.namespace === 'alert') {
    const words = isRouterAlert(event) ? events.routerSeverities : events.severities
    return ownText(words, event.fields['severity']) ?? ''
  }
  if (event.namespace === 'connect') {
    return ownText(events.connectedTo, event.fields['dst_type']) ?? ''
  }
  return (
    ownText(events.types, type) ??
    fieldLabel(type.replace(/^service\./, '').replace(/[._-]+/g, ' '))
  )
}

const warnings: ReadonlySet<string> = new Set([
  'fail',
  'fault',
  'leadership.lost',
  'peer.disconnected',
  'router-offline',
])
const failures: ReadonlySet<string> = new Set(['state.is_leaderless', 'state.ro'])

/** How much an event matters to an operator. */
export function eventTone(event: NetworkEvent): BadgeTone {
  if (event.namespace === 'alert') {
    const tones: Readonly<Record<string, BadgeTone>> = { error: 'bad', warning: 'warn' }
    return ownText(tones, event.fields['severity']) ?? (isRouterAlert(event) ? 'plain' : 'good')
  }
  const type = eventTypeName(event)
  if (failures.has(type)) return 'bad'
  return warnings.has(type) || /\.dial\.(?!success)/.test(type) ? 'warn' : 'plain'
}

/**
 * Whether an event is about traffic, about a circuit or a dial that did not fail, or about a
 * session or a connection to a controller that another event reports too. Such events are frequent.
 */
export function isFrequentEvent(event: NetworkEvent): boolean {
  const { namespace, fields } = event
  if (namespace === 'connect') return fields['dst_type'] === 'ctrl'
  if (namespace === 'circuit') return eventTypeName(event) !== 'failed'
  if (namespace === 'service') return eventTypeName(event).endsWith('dial.success')
  if (namespace === 'apiSession') return eventTypeName(event) === 'created'
  if (namespace !== ENTITY_CHANGE) return namespace === 'usage' || namespace === 'metrics'
  return /^(apiS|s)essions$/.test(String(fields['entityType'] ?? fields['entity_type']))
}

/** The subject of an event in words: the kind of a changed record, otherwise the namespace. */
export function eventKindText(event: NetworkEvent): string {
  const { namespace, fields } = event
  if (namespace !== ENTITY_CHANGE) return namespaceText(namespace)
  const kind = findKindAtPath(changedPath(event))
  return kind === null
    ? namespaceText(
        String(fields['entityType'] ?? fields['entity_type'] ?? namespace).replace(/s$/, ''),
      )
    : texts.form.title(kind.one)
}

/** Namespaces in which the type of an event alone says what happened. */
const selfExplanatory: ReadonlySet<string> = new Set([
  'authentication',
  'cluster',
  'link',
  'router',
])

/** The title of an event, such as `Identity changed` or `Logged in`. */
export function eventTitle(event: NetworkEvent): string {
  const [kind, type] = [eventKindText(event), eventTypeText(event)]
  if (type !== '' && (selfExplanatory.has(event.namespace) || isRouterAlert(event))) return type
  return `${kind} ${type.charAt(0).toLowerCase()}${type.slice(1)}`.trim()
}

/** The kind of the events in a namespace, in words. */
export function namespaceText(namespace: string): string {
  return ownText(pageTexts.events.kinds, namespace) ?? fieldLabel(namespace)
}

const ENTITY_CHANGE = 'entityChange'

/** A record that an event is about. */
export interface EventRecord {
  /** Collection of the record in the management API. */
  readonly path: string
  readonly id: string
  /** Name of the record; '' if the event does not contain the name. */
  readonly name: string
}

/** Collection of the record that changed; '' if the event names none. */
function changedPath({ fields }: NetworkEvent): string {
  const type = String(fields['entityType'] ?? fields['entity_type'] ?? '')
  const path = type.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return path === 'routers' ? 'edge-routers' : path
}

/** Collections of the two records that a connection connects, by their type in the event. */
const ENDS: Readonly<Record<string, string>> = { identity: 'identities', router: 'edge-routers' }

const RECORDS: readonly (readonly [field: string, path: string])[] = [
  ['identity_id', 'identities'],
  ['service_id', 'services'],
  ['router_id', 'edge-routers'],
  ['src_router_id', 'edge-routers'],
  ['dst_router_id', 'edge-routers'],
]

/** The records that an event is about. */
export function eventRecords(event: NetworkEvent): readonly EventRecord[] {
  const { fields } = event
  if (isRouterAlert(event)) {
    return [{ path: 'edge-routers', id: String(fields['alert_source_id']), name: '' }]
  }
  const state =
    objectAt(fields, 'finalState', 'final_state') ??
    objectAt(fields, 'initialState', 'initial_state')
  const type = fields['entityType'] ?? fields['entity_type']
  if (state !== null && typeof type === 'string' && typeof state['id'] === 'string') {
    const path = changedPath(event)
    const name = typeof state['name'] === 'string' ? state['name'] : ''
    // A terminator has no name, but it belongs to a service at a router.
    if (path === 'terminators') return recordsAt(state, TERMINATOR_RECORDS)
    if (path === 'enrollments') return recordsAt(state, [['identityId', 'identities']])
    return [{ path, id: state['id'], name }]
  }
  const ends = ['src', 'dst'].flatMap((end) => {
    const path = ownText(ENDS, fields[`${end}_type`])
    return path === undefined ? [] : [{ path, id: String(fields[`${end}_id`]), name: '' }]
  })
  if (ends.length > 0) return ends
  if (typeof fields['entity_name'] === 'string') {
    const path = type === 'identities' ? 'identities' : 'service-policies'
    return [{ path, id: String(fields['entity_id']), name: fields['entity_name'] }]
  }
  return recordsAt(fields, RECORDS)
}

const TERMINATOR_RECORDS = [
  ['service', 'services'],
  ['serviceId', 'services'],
  ['router', 'edge-routers'],
  ['routerId', 'edge-routers'],
] as const

function recordsAt(
  fields: Fields,
  places: readonly (readonly [field: string, path: string])[],
): readonly EventRecord[] {
  return places.flatMap(([field, path]) => {
    const id = fields[field]
    return typeof id === 'string' && id !== '' ? [{ path, id, name: '' }] : []
  })
}

/** Name of the author of a change; '' if the event has none. */
export function eventAuthor({ fields }: NetworkEvent): string {
  const author = objectAt(objectAt(fields, 'metadata') ?? {}, 'author')
  const name = author?.['name']
  return typeof name === 'string' ? name : ''
}

const SUBJECTS = [
  'circuit_id',
  'link_id',
  'id',
  'message',
  'leaderId',
  'src_id',
  'remote_address',
] as const

/** A few words that name the subject of an event without a record. */
export function eventSubject({ fields }: NetworkEvent): string {
  const { peers } = fields
  if (Array.isArray(peers)) {
    return peers.map((peer: unknown) => String((peer as Fields | null)?.['id'])).join(', ')
  }
  for (const name of SUBJECTS) {
    const value = fields[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return ''
}

/** Whether an event contains the typed text. */
export function eventContainsText({ namespace, fields }: NetworkEvent, typed: string): boolean {
  const text = typed.trim().toLowerCase()
  if (text === '') return true
  return `${namespace} ${JSON.stringify(fields)}`.toLowerCase().includes(text)
}

/** A field of a record before and after an event. */
export interface StateChange {
  readonly name: string
  readonly before: unknown
  readonly after: unknown
}

type Fields = Readonly<Record<string, unknown>>

/** Fields of a record that an entity event reports as changed; empty for other events. */
export function entityFieldChanges({ fields }: NetworkEvent): readonly StateChange[] {
  const before = objectAt(fields, 'initialState', 'initial_state')
  const after = objectAt(fields, 'finalState', 'final_state')
  if (before === null && after === null) return []
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])
  return [...names].sort().flatMap((name) => {
    const [was, is] = [before?.[name], after?.[name]]
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ name, before: was, after: is }]
  })
}

function objectAt(fields: Fields, ...names: readonly string[]): Fields | null {
  for (const name of names) {
    const value = fields[name]
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  }
  return null
}

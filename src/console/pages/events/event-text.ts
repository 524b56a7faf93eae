import type { NetworkEvent } from '../../client/event-feed.ts'

/**
 * The type of an event, such as `created` or `peer.connected`. Its field depends on the namespace.
 */
export function eventKind({ fields }: NetworkEvent): string {
  for (const name of ['event_type', 'eventType', 'type']) {
    const value = fields[name]
    if (typeof value === 'string') return value
  }
  return ''
}

const SUBJECTS = [
  'entityType',
  'entity_type',
  'identity_id',
  'router_id',
  'circuit_id',
  'service_id',
  'link_id',
  'id',
  'message',
  'leader_id',
] as const

/** Names the subject of an event in a few words. */
export function eventSubject({ fields }: NetworkEvent): string {
  return SUBJECTS.flatMap((name) => {
    const value = fields[name]
    return typeof value === 'string' && value !== '' ? [value] : []
  })
    .slice(0, 2)
    .join(' ')
}

/** Whether an event contains the typed text. */
export function matchesText({ namespace, fields }: NetworkEvent, typed: string): boolean {
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

/** Fields of a record that an entity change has changed; empty for other events. */
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

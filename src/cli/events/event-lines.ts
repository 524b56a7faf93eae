import { isJsonObject } from '../../lib/text/json-value.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'

type EventJson = Readonly<Record<string, unknown>>

/** One line for a person: time, event, and subject. */
export function eventLine(event: EventJson): string {
  const { timestamp, namespace, event_src_id: controller } = event
  const type = textOf(event['event_type'] ?? event['eventType'])
  const head = [timestamp, controller, type === '' ? namespace : `${textOf(namespace)}.${type}`]
  return `${head.map(textOf).join('  ')}  ${shown(event)}`.trimEnd()
}

/** Fields that are shown already or are of no use to a person. */
const said = new Set([
  'namespace',
  'event_src_id',
  'timestamp',
  'event_id',
  'event_type',
  'eventType',
  'version',
  'initialState',
  'finalState',
  'metadata',
  'eventId',
  'isParentEvent',
  'token',
])

function shown(event: EventJson): string {
  const record = objectIn(event, 'finalState') ?? objectIn(event, 'initialState')
  const author = objectIn(objectIn(event, 'metadata') ?? {}, 'author')
  const parts = Object.entries(event).flatMap(([name, value]) =>
    said.has(name) || value === '' ? [] : `${textOf(name)}=${textOf(value)}`,
  )
  if (record !== undefined)
    parts.push(`id=${textOf(record['id'])}`, `name=${textOf(record['name'])}`)
  if (author !== undefined)
    parts.push(`by=${textOf(author['name'] === '' ? author['id'] : author['name'])}`)
  return parts.join(' ')
}

function objectIn(event: EventJson, name: string): EventJson | undefined {
  const value = event[name]
  // @guard answers-of-a-hostile-server--event
  return isJsonObject(value) ? value : undefined
}

/** Text on one line without control characters, because others wrote it. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // @guard names-at-a-terminal--event
  return printableLine(text)
}

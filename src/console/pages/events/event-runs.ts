import type { NetworkEvent } from '../../client/event-feed.ts'
import { sortByName } from '../../app/name-order.ts'
import { visibleText } from '../../app/visible-text.ts'
import { eventRecords, eventSubject, eventTypeName } from './event-text.ts'

/** Events that the list shows as one, newest first; usually only one. */
export interface EventRun {
  readonly first: NetworkEvent
  readonly events: readonly NetworkEvent[]
}

/** At least this many events with one cause are shown as one. */
const RUN_MIN = 3
/** Maximum time between the event that begins a run in the list and each other event of the run. */
const RUN_MS = 2_000

const router = (id: unknown): string => `offline ${String(id)}`

/**
 * Texts that identify the cause of an event: events with a common cause belong together. The
 * terminators and links of a router go offline with the router.
 */
function causesOf(event: NetworkEvent): readonly string[] {
  const { namespace, fields } = event
  const type = eventTypeName(event)
  if (type === 'router-offline') return [router(fields['router_id'])]
  if (namespace === 'link' && type === 'fault') {
    return [router(fields['src_router_id']), router(fields['dst_router_id'])]
  }
  const { metadata } = fields as {
    readonly metadata?: { readonly author?: { readonly id?: unknown } }
  }
  const kind = fields['entityType'] ?? fields['dst_type'] ?? ''
  return [[namespace, type, kind, metadata?.author?.id ?? ''].join(' ')]
}

const timeOf = ({ timestamp }: NetworkEvent): number => Date.parse(timestamp)

/** Joins events with a common cause that happened at about the same time. Newest first. */
export function groupEvents(events: readonly NetworkEvent[]): readonly EventRun[] {
  const runs: { readonly atMs: number; events: NetworkEvent[] }[] = []
  // By cause: the newest run with this cause.
  const open = new Map<string, (typeof runs)[number]>()
  for (const event of events) {
    const [causes, atMs] = [causesOf(event), timeOf(event)]
    const run = causes
      .map((cause) => open.get(cause))
      .find((one) => one !== undefined && Math.abs(one.atMs - atMs) <= RUN_MS)
    if (run !== undefined) {
      run.events.push(event)
      continue
    }
    const next = { atMs, events: [event] }
    runs.push(next)
    for (const cause of causes) open.set(cause, next)
  }
  const rows = runs.flatMap(({ events: all }): readonly EventRun[] => {
    // The event of the router represents those of its terminators and links.
    const first = all.find(({ namespace }) => namespace === 'router') ?? all[0]
    if (first === undefined) return []
    return all.length < RUN_MIN
      ? all.map((event) => ({ first: event, events: [event] }))
      : [{ first, events: all }]
  })
  // Events of several controllers arrive in another order than they happened.
  return rows.sort((one, other) => timeOf(other.first) - timeOf(one.first))
}

/**
 * The names in which the events of a run differ: of their records, or of the controllers that they
 * are about.
 * @param names names of records by `collection/id`.
 */
export function namesInRun(
  events: readonly NetworkEvent[],
  names: ReadonlyMap<string, string>,
): readonly string[] {
  const found = events.flatMap((event) => {
    const [record] = eventRecords(event)
    const name =
      record === undefined
        ? eventSubject(event)
        : record.name || (names.get(`${record.path}/${record.id}`) ?? '')
    return name === '' ? [] : [visibleText(name)]
  })
  return sortByName([...new Set(found)], String)
}

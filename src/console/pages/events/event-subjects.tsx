import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { NetworkEvent } from '../../client/event-feed.ts'
import { pageTexts } from '../../page-texts.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { useRecordNames } from '../records/record-names.ts'
import { type EventRun, namesInRun } from './event-runs.ts'
import { eventAuthor, eventRecords, eventSubject } from './event-text.ts'

/** Names of the records that events are about, by `collection/id`. */
export function useSubjectNames(events: readonly NetworkEvent[]): ReadonlyMap<string, string> {
  return useRecordNames(events.flatMap(eventRecords).filter(({ name }) => name === ''))
}

const NAMES_SHOWN = 3

/** The common text of the events of a run, and the names of the records in which they differ. */
export function RunSubjects(props: {
  readonly run: EventRun
  readonly names: ReadonlyMap<string, string>
}) {
  const { run, names } = props
  const { events: words } = pageTexts
  const { first, events } = run
  if (first.namespace === 'router') {
    const amount = (namespace: string): number =>
      events.filter((event) => event.namespace === namespace).length
    const [terminators, links] = [amount('terminator'), amount('link')]
    return (
      <>
        <EventSubjects event={first} names={names} />
        {terminators === 0 ? '' : ` · ${words.terminators(terminators)}`}
        {links === 0 ? '' : ` · ${words.lostLinks(links)}`}
      </>
    )
  }
  const found = namesInRun(events, names)
  const shown = found.slice(0, NAMES_SHOWN)
  const more = found.length - shown.length
  return (
    <>
      <span class="count">{words.times(events.length)}</span>{' '}
      {words.names(more > 0 ? [...shown, words.more(more)] : shown)}
    </>
  )
}

/** The records that an event is about, by name and linked, and its author. */
export function EventSubjects(props: {
  readonly event: NetworkEvent
  readonly names: ReadonlyMap<string, string>
}) {
  const { event, names } = props
  const records = eventRecords(event)
  const author = eventAuthor(event)
  const named = records
    .map((one) => ({ ...one, text: one.name || (names.get(`${one.path}/${one.id}`) ?? '') }))
    .filter(({ text }) => text !== '')
  return (
    <>
      {records.length === 0 ? <span class="faint">{visibleText(eventSubject(event))}</span> : null}
      {named.map(({ path, id, text }, at) => (
        <span key={`${path}/${id}`}>
          {at > 0 ? ' · ' : ''}
          {findKindAtPath(path) === null ? (
            visibleText(text)
          ) : (
            <a href={consolePath(path, id)}>{visibleText(text)}</a>
          )}
        </span>
      ))}
      {author === '' ? null : (
        <span class="faint"> {pageTexts.events.by(visibleText(author))}</span>
      )}
    </>
  )
}

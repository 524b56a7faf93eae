import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { NetworkEvent } from '../../client/event-feed.ts'
import { pageTexts } from '../../page-texts.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { useRecordNames } from '../records/record-names.ts'
import { eventAuthor, eventKindText, eventRecords, eventSubject } from './event-text.ts'

/** Names of the records that events are about, by `collection/id`. */
export function useSubjectNames(events: readonly NetworkEvent[]): ReadonlyMap<string, string> {
  return useRecordNames(events.flatMap(eventRecords).filter(({ name }) => name === ''))
}

/** The records that an event is about, by name and linked, and its author. */
export function EventSubjects(props: {
  readonly event: NetworkEvent
  readonly names: ReadonlyMap<string, string>
}) {
  const { event, names } = props
  const records = eventRecords(event)
  const author = eventAuthor(event)
  return (
    <>
      {records.length === 0 ? <span class="faint">{visibleText(eventSubject(event))}</span> : null}
      {records.map(({ path, id, name }, at) => {
        const found = name === '' ? (names.get(`${path}/${id}`) ?? '') : name
        const text = found === '' ? id : visibleText(found)
        const kind = findKindAtPath(path)
        return (
          <span key={`${path}/${id}`}>
            {at > 0 ? ' · ' : ''}
            {/* The kind of a changed record is the heading of the event. */}
            {kind === null
              ? `${path.replaceAll('-', ' ').replace(/s$/, '')} `
              : eventKindText(event).toLowerCase() === kind.one.toLowerCase()
                ? ''
                : `${kind.one} `}
            {kind === null || found === '' ? text : <a href={consolePath(path, id)}>{text}</a>}
          </span>
        )
      })}
      {author === '' ? null : <span class="faint"> {pageTexts.events.by(visibleText(author))}</span>}
    </>
  )
}

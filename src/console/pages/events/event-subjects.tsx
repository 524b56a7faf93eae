import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { hasPermission } from '../../app/api-documents.ts'
import { pathTo } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { NetworkEvent } from '../../client/event-feed.ts'
import { texts } from '../../texts.ts'
import { kindAt } from '../records/kinds.ts'
import { readNames } from '../records/record-data.ts'
import { eventAuthor, eventRecords, eventSubject } from './event-text.ts'

/** Names by `collection/id`; the id itself for a record that no longer exists. */
const known = signal<ReadonlyMap<string, string>>(new Map())
const NAMES_MAX = 2000
const LOOKED_UP_MAX = 100

/** Names of the records of events, loaded once for each record. */
export function useSubjectNames(events: readonly NetworkEvent[]): ReadonlyMap<string, string> {
  const missing = new Map<string, Set<string>>()
  for (const event of events) {
    for (const { path, id, name } of eventRecords(event)) {
      if (name !== '' || known.value.has(`${path}/${id}`)) continue
      if (!hasPermission(`${kindAt(path)?.permission}.read`)) continue
      const ids = missing.get(path) ?? new Set()
      if (ids.size < LOOKED_UP_MAX) ids.add(id)
      missing.set(path, ids)
    }
  }
  const key = [...missing].map(([path, ids]) => `${path} ${[...ids].join(' ')}`).join('\n')
  useEffect(() => {
    const stopping = new AbortController()
    for (const [path, ids] of missing) {
      readNames(path, [...ids], stopping.signal)
        .then((names) => {
          const found = [...ids].map((id) => [`${path}/${id}`, names.get(id) ?? ''] as const)
          known.value = new Map([...[...known.value].slice(-NAMES_MAX), ...found])
        })
        .catch(() => undefined)
    }
    return () => stopping.abort()
  }, [key])
  return known.value
}

/** The records that an event is about, by name and linked, and its author. */
export function Subjects(props: {
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
        const kind = kindAt(path)
        return (
          <span key={`${path}/${id}`}>
            {at > 0 ? ' · ' : ''}
            {kind === null ? path.replaceAll('-', ' ') : kind.one}
            {kind === null || found === '' ? text : <a href={pathTo(path, id)}>{text}</a>}
          </span>
        )
      })}
      {author === '' ? null : <span class="faint"> {texts.events.by(visibleText(author))}</span>}
    </>
  )
}

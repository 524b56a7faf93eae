import { useLoadedData } from '../../app/loaded.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { eventFeed } from '../../app/console-state.ts'
import { Badge, Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { consolePath } from '../../app/navigation.ts'
import { ChangeSummary } from '../activity/activity-list.tsx'
import { eventTypeName } from '../events/event-text.ts'
import { fieldLabel } from '../records/form-model.ts'
import { EventSubjects, useSubjectNames } from '../events/event-subjects.tsx'
import { fetchRecentChanges } from './cluster-requests.ts'

const REFRESH_MS = 10_000
const SHOWN_MAX = 10

/** Shows the newest entries of the audit log. */
export function ChangesPanel() {
  const { news } = texts
  const changes = useLoadedData('audit', fetchRecentChanges, REFRESH_MS)
  const { value: rows } = changes.data
  return (
    <section class="panel" aria-labelledby="changes">
      <div class="panel-head">
        <h2 id="changes">{news.changes}</h2>
        <a class="small" href={consolePath('activity')}>
          {news.all}
        </a>
      </div>
      {changes.error.value === null ? null : (
        <div class="panel-body">
          <FailureNotice error={changes.error.value} />
        </div>
      )}
      {rows === null && changes.error.value === null ? (
        <div class="panel-body">
          <Skeleton />
        </div>
      ) : null}
      <ul class="feed">
        {(rows ?? []).map((row) => (
          <li key={row.index}>
            <span class="feed-text">
              <ChangeSummary entry={row} />{' '}
              {row.outcome === 'done' ? null : <Badge tone="warn">{row.outcome}</Badge>}
            </span>
            <span class="faint tiny">
              <Time at={row.at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Shows the newest events since this tab was opened. */
export function EventsPanel() {
  const { news } = texts
  const events = eventFeed.events.value
    .filter(({ namespace }) => namespace !== 'metrics' && namespace !== 'usage')
    .slice(0, SHOWN_MAX)
  const names = useSubjectNames(events)
  return (
    <section class="panel" aria-labelledby="events">
      <div class="panel-head">
        <h2 id="events">{news.events}</h2>
        <FeedBadge />
      </div>
      {events.length === 0 ? (
        <p class="panel-body soft small">
          {eventFeed.state.value === 'refused' ? news.refused : news.none}
        </p>
      ) : (
        <ul class="feed">
          {events.map((event) => (
            <li key={event.id}>
              <span class="feed-text">
                {fieldLabel(event.namespace)} <span class="soft">{eventTypeName(event)}</span>{' '}
                <EventSubjects event={event} names={names} />
              </span>
              <span class="faint tiny">
                <Time at={event.timestamp} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

export function FeedBadge() {
  const { news } = texts
  const { value } = eventFeed.state
  if (value === 'live') return <Badge tone="good">{news.live}</Badge>
  return <Badge tone={value === 'off' ? 'plain' : 'warn'}>{news.states[value]}</Badge>
}

import { eventFeed } from '../../app/console-state.ts'
import { Badge } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { EventSubjects, useSubjectNames } from './event-subjects.tsx'
import { EventKind } from './event-kind.tsx'
import { eventTypeText, isFrequentEvent } from './event-text.ts'

const SHOWN_MAX = 10

/** Shows the newest events since this tab was opened. */
export function RecentEventsPanel() {
  const { news } = texts
  const events = eventFeed.events.value
    .filter((event) => !isFrequentEvent(event))
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
                <EventKind event={event} /> <span class="soft">{eventTypeText(event)}</span>{' '}
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

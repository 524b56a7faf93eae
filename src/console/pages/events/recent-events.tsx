import { eventFeed } from '../../app/console-state.ts'
import { Badge } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { groupEvents } from './event-runs.ts'
import { EventSubjects, RunSubjects, useSubjectNames } from './event-subjects.tsx'
import { isFrequentEvent } from './event-text.ts'
import { EventTitle } from './event-title.tsx'

const SHOWN_MAX = 10
/** Number of newest events of which the rows are made. */
const READ_MAX = 100

/** Shows the newest events that this tab has stored, without the frequent ones. */
export function RecentEventsPanel() {
  const { news } = texts
  const events = eventFeed.events.value.filter((event) => !isFrequentEvent(event))
  const runs = groupEvents(events.slice(0, READ_MAX)).slice(0, SHOWN_MAX)
  const names = useSubjectNames(runs.flatMap((run) => run.events))
  return (
    <section class="panel" aria-labelledby="events">
      <div class="panel-head">
        <h2 id="events">{news.events}</h2>
        <FeedBadge />
      </div>
      {runs.length === 0 ? (
        <p class="panel-body soft small">
          {eventFeed.state.value === 'refused' ? news.refused : news.none}
        </p>
      ) : (
        <ul class="feed">
          {runs.map((run) => (
            <li key={run.events.at(-1)?.id}>
              <span class="feed-text">
                <EventTitle event={run.first} />{' '}
                {run.events.length === 1 ? (
                  <EventSubjects event={run.first} names={names} />
                ) : (
                  <RunSubjects run={run} names={names} />
                )}
              </span>
              <span class="faint tiny">
                <Time at={run.first.timestamp} />
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

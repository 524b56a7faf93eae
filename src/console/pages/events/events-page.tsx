import { useSignal } from '@preact/signals'

import { eventFeed } from '../../app/console-state.ts'
import type { NetworkEvent } from '../../client/event-feed.ts'
import { Button } from '../../controls/button.tsx'
import { Expandable } from '../../controls/expandable.tsx'
import { Icon } from '../../controls/icon.tsx'
import { EmptyState, Notice } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { FeedBadge } from './recent-events.tsx'
import { EventChange } from './event-change.tsx'
import { eventContainsText, eventTitle, isFrequentEvent, namespaceText } from './event-text.ts'
import { EventTitle } from './event-title.tsx'
import { type EventRun, groupEvents } from './event-runs.ts'
import { EventSubjects, RunSubjects, useSubjectNames } from './event-subjects.tsx'

const SHOWN_MAX = 200

/**
 * The newest events that this tab has stored, updated as they arrive; the frequent ones only on
 * request.
 */
export function EventsPage() {
  const { events } = pageTexts
  const typed = useSignal('')
  const namespace = useSignal('')
  const frozen = useSignal<readonly NetworkEvent[] | null>(null)
  const all = frozen.value ?? eventFeed.events.value
  const namespaces = [...new Set(all.map((event) => event.namespace))].sort()
  const shown = all.filter(
    (event) =>
      (namespace.value === '' || event.namespace === namespace.value) &&
      (eventFeed.keepsUsage.value || !isFrequentEvent(event)) &&
      eventContainsText(event, typed.value),
  )
  const names = useSubjectNames(shown.slice(0, SHOWN_MAX))
  return (
    <>
      <div class="filter">
        <div class="filter-input">
          <Icon name="search" />
          <input
            class="input"
            type="search"
            aria-label={events.filter}
            placeholder={events.filter}
            value={typed.value}
            onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
          />
        </div>
        <select
          class="input facet"
          aria-label={events.kind}
          value={namespace.value}
          onChange={({ currentTarget }) => (namespace.value = currentTarget.value)}
        >
          <option value="">{events.every}</option>
          {namespaces.map((name) => (
            <option key={name} value={name}>
              {namespaceText(name)}
            </option>
          ))}
        </select>
        <label class="check">
          <input
            type="checkbox"
            checked={eventFeed.keepsUsage.value}
            onChange={({ currentTarget }) => (eventFeed.keepsUsage.value = currentTarget.checked)}
          />
          {events.usage}
        </label>
        <span class="exports">
          <FeedBadge />
        </span>
        <Button
          onClick={() => (frozen.value = frozen.value === null ? eventFeed.events.value : null)}
        >
          {frozen.value === null ? events.pause : events.resume}
        </Button>
      </div>
      {eventFeed.gaps.value > 0 ? <Notice tone="warn">{events.gap}</Notice> : null}
      <section class="panel" aria-label={events.list}>
        {shown.length === 0 ? (
          <EmptyState icon="event" title={events.none}>
            <p>{eventFeed.state.value === 'refused' ? texts.news.refused : events.noneWhat}</p>
          </EmptyState>
        ) : (
          <ul class="event-list">
            {groupEvents(shown.slice(0, SHOWN_MAX)).map((run) => (
              <li key={run.events.at(-1)?.id}>
                <RunRow run={run} names={names} />
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  )
}

/** One event, or several events with one cause. */
function RunRow(props: { readonly run: EventRun; readonly names: ReadonlyMap<string, string> }) {
  const { run, names } = props
  const { events } = pageTexts
  const { first } = run
  const isOne = run.events.length === 1
  return (
    <Expandable
      label={isOne ? events.details(eventTitle(first)) : events.runDetails(run.events.length)}
      head={
        <>
          <span class="event-time faint">
            <Time at={first.timestamp} />
          </span>
          <span>
            <EventTitle event={first} />
          </span>
          <span class="event-subject">
            {isOne ? (
              <EventSubjects event={first} names={names} />
            ) : (
              <RunSubjects run={run} names={names} />
            )}
          </span>
        </>
      }
      body={() =>
        isOne ? (
          <EventChange event={first} />
        ) : (
          run.events.map((event) => (
            <RunRow key={event.id} run={{ first: event, events: [event] }} names={names} />
          ))
        )
      }
    />
  )
}

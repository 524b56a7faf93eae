import type { NetworkEvent } from '../../client/event-feed.ts'
import { Badge } from '../../controls/status.tsx'
import { eventTitle, eventTone } from './event-text.ts'

/** The title of an event; an event that an operator must not miss has a color. */
export function EventTitle({ event }: { readonly event: NetworkEvent }) {
  const tone = eventTone(event)
  const title = eventTitle(event)
  return tone === 'plain' ? (
    <span class="event-name">{title}</span>
  ) : (
    <Badge tone={tone}>{title}</Badge>
  )
}

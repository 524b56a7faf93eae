import type { NetworkEvent } from '../../client/event-feed.ts'
import { Badge } from '../../controls/status.tsx'
import { eventKindText, eventTone } from './event-text.ts'

/** The subject of an event; one that an operator must not miss has a color. */
export function EventKind({ event }: { readonly event: NetworkEvent }) {
  const tone = eventTone(event)
  const name = eventKindText(event)
  return tone === 'plain' ? <>{name}</> : <Badge tone={tone}>{name}</Badge>
}

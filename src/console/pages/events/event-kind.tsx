import type { NetworkEvent } from '../../client/event-feed.ts'
import { Badge } from '../../controls/status.tsx'
import { fieldLabel } from '../records/form-model.ts'
import { eventTone } from './event-text.ts'

/** The namespace of an event; one that an operator must not miss has a color. */
export function EventKind({ event }: { readonly event: NetworkEvent }) {
  const tone = eventTone(event)
  const name = fieldLabel(event.namespace)
  return tone === 'plain' ? <>{name}</> : <Badge tone={tone}>{name}</Badge>
}

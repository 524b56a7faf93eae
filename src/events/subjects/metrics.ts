import type { NamedMetric } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

const VERSION = 3

export const metricsSubject: EventSubject = {
  namespace: 'metrics',
  aliases: [],
  about: 'One metric of a controller or router for one interval.',
  typeField: null,
  types: [
    {
      name: 'metrics',
      emitter: 'itself',
      when: 'for a controller: every `events.metricsIntervalMs` while anyone subscribes to these events; for a router: when the router has sent its metrics to this controller',
    },
  ],
  fields: [
    {
      name: 'metric_type',
      type: 'string',
      meaning: '`intValue`, `floatValue`, `histogram`, `meter` or `timer`.',
    },
    {
      name: 'source_id',
      type: 'string',
      meaning: 'ID of the controller or router that measured the metric.',
    },
    {
      name: 'source_entity_id',
      type: 'string',
      meaning:
        'For metrics of a link, the ID of the link; the name of the metric then omits the ID.',
      isOptional: true,
    },
    { name: 'version', type: 'number', meaning: 'Version of this format: 3.' },
    { name: 'metric', type: 'string', meaning: 'Name of the metric.' },
    {
      name: 'metrics',
      type: 'object',
      meaning: '`value`, or the values of a histogram, meter or timer.',
    },
    {
      name: 'tags',
      type: 'object',
      meaning: 'Tags that the source sends with its metrics.',
      isOptional: true,
    },
    {
      name: 'source_event_id',
      type: 'string',
      meaning: 'ID of the report; all events from one report have the same ID.',
    },
  ],
}

interface MetricSource {
  readonly id: string
  readonly eventId: string
  readonly atMs: number
  readonly tags: Readonly<Record<string, string>>
}

const OF_LINK = /^link\.(.{1,128})\.(latency|queue_time)$/

export function metricEvent(figure: NamedMetric, source: MetricSource): NewEvent {
  const [, entityId, part] = OF_LINK.exec(figure.name) ?? []
  const name = entityId === undefined ? figure.name : `link.${part ?? ''}`
  return {
    namespace: 'metrics',
    atMs: source.atMs,
    about: name,
    source: source.id,
    weight:
      320 + Object.keys(figure.values).length * 32 + figure.name.length + charactersOf(source),
    fields: () => ({
      metric_type: figure.type,
      source_id: source.id,
      ...(entityId === undefined ? {} : { source_entity_id: entityId }),
      version: VERSION,
      metric: name,
      metrics: figure.values,
      ...(Object.keys(source.tags).length === 0 ? {} : { tags: source.tags }),
      source_event_id: source.eventId,
    }),
  }
}

/** Number of characters that the source adds to each of its events. */
function charactersOf({ eventId, tags }: MetricSource): number {
  // @guard reports-of-a-router--tags
  return Object.entries(tags).reduce(
    (sum, [name, text]) => sum + name.length + text.length,
    eventId.length,
  )
}

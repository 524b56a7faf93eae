import type { Observation } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

type RouterAlertFact = Extract<Observation, { readonly kind: 'routerAlert' }>
type AlarmFact = Extract<Observation, { readonly kind: 'alarm' }>

export const alertSubject: EventSubject = {
  namespace: 'alert',
  aliases: [],
  about:
    'An alarm was raised or cleared (see the alarms in alarms.md), or a router reported a fault that its operator can correct.',
  typeField: null,
  types: [
    {
      name: 'alert',
      emitter: 'observer',
      when: 'an alarm was raised or cleared, or a router reported a fault',
    },
  ],
  fields: [
    { name: 'alert_source_type', type: 'string', meaning: '`controller` or `router`.' },
    {
      name: 'alert_source_id',
      type: 'string',
      meaning: 'Controller that raised the alarm, or router that reported the fault.',
    },
    {
      name: 'severity',
      type: 'string',
      meaning:
        '`error` for a critical alarm, `warning` for another alarm, `info` when an alarm was cleared; for a router, the severity that it reported.',
    },
    {
      name: 'message',
      type: 'string',
      meaning:
        'Text of the alarm, one sentence; with the prefix `cleared: ` when the alarm was cleared; for a router, the text that it reported.',
    },
    {
      name: 'details',
      type: 'strings',
      meaning: 'The code of the alarm, or the details that the router reported.',
    },
    {
      name: 'related_entities',
      type: 'object',
      meaning: 'IDs by entity type, as reported by the router; empty for an alarm.',
    },
  ],
}

export function alertEvent(fact: AlarmFact, controllerId: string, atMs: number): NewEvent {
  const { code, text, severity, isOn } = fact
  return {
    namespace: 'alert',
    atMs,
    weight: 256 + text.length,
    fields: () => ({
      alert_source_type: 'controller',
      alert_source_id: controllerId,
      severity: !isOn ? 'info' : severity === 'critical' ? 'error' : 'warning',
      message: isOn ? text : `cleared: ${text}`,
      details: [code],
      related_entities: {},
    }),
  }
}

export function routerAlertEvent(fact: RouterAlertFact, atMs: number): NewEvent {
  const { routerId, severity, text, details, relatedEntities } = fact
  const texts = [...details, ...Object.entries(relatedEntities).flat()]
  return {
    namespace: 'alert',
    atMs: fact.atMs ?? atMs,
    weight: texts.reduce((sum, { length }) => sum + length, 256 + text.length),
    fields: () => ({
      alert_source_type: 'router',
      alert_source_id: routerId,
      severity,
      message: text,
      details,
      related_entities: relatedEntities,
    }),
  }
}

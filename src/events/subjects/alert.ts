import type { Observation } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

type AlarmFact = Extract<Observation, { readonly kind: 'alarm' }>

export const alertSubject: EventSubject = {
  namespace: 'alert',
  aliases: [],
  about: 'An alarm was raised or cleared; see the alarms in alarms.md.',
  typeField: null,
  types: [{ name: 'alert', emitter: 'seer', when: 'an alarm was raised or cleared' }],
  fields: [
    { name: 'alert_source_type', type: 'string', meaning: 'Always `controller`.' },
    { name: 'alert_source_id', type: 'string', meaning: 'Controller that raised the alarm.' },
    {
      name: 'severity',
      type: 'string',
      meaning:
        '`error` for a critical alarm, `warning` for another alarm, `info` when an alarm was cleared.',
    },
    {
      name: 'message',
      type: 'string',
      meaning:
        'Text of the alarm, one sentence; after a prefix `cleared: ` when the alarm was cleared.',
    },
    { name: 'details', type: 'strings', meaning: 'The code of the alarm.' },
    { name: 'related_entities', type: 'object', meaning: 'Always empty.' },
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

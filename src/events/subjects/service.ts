import type { DialResult } from '../../ports/live-facts.ts'
import type { EventSubject, NewEvent } from '../field.ts'

const VERSION = 2
const MS_PER_SECOND = 1000

const types: Readonly<Record<DialResult, { readonly name: string; readonly when: string }>> = {
  success: { name: 'service.dial.success', when: 'circuits were laid' },
  fail: {
    name: 'service.dial.fail',
    when: 'no circuit could be laid, after all attempts; without a terminator where none could be tried',
  },
  timeout: { name: 'service.dial.timeout', when: 'a router did not answer an attempt in time' },
  other: { name: 'service.dial.error_other', when: 'an attempt failed for another reason' },
  terminatorTimeout: {
    name: 'service.dial.terminator.timeout',
    when: 'the router of the terminator reached its host too late',
  },
  terminatorRefused: {
    name: 'service.dial.terminator.connection_refused',
    when: 'the host refused the connection',
  },
  terminatorInvalid: {
    name: 'service.dial.terminator.invalid',
    when: 'the router does not know the terminator',
  },
  terminatorMisconfigured: {
    name: 'service.dial.terminator.misconfigured',
    when: 'the router cannot use the terminator as it is configured',
  },
}

export const service: EventSubject = {
  namespace: 'service',
  aliases: ['services'],
  about:
    'How often services were dialed through one controller over one interval: one event for each service, terminator and result, every `events.metricsIntervalMs` while they have a subscriber.',
  typeField: 'event_type',
  types: Object.values(types).map(({ name, when }) => ({ name, emitter: 'itself', when })),
  fields: [
    { name: 'version', type: 'number', meaning: 'Version of this format: 2.' },
    { name: 'event_type', type: 'string', meaning: 'The type.' },
    { name: 'service_id', type: 'string', meaning: 'What was dialed.' },
    { name: 'terminator_id', type: 'string', meaning: 'Where it led; empty where none was tried.' },
    { name: 'count', type: 'number', meaning: 'How often.' },
    { name: 'interval_start_utc', type: 'number', meaning: 'Seconds since 1970.' },
    { name: 'interval_length', type: 'number', meaning: 'Seconds.' },
  ],
}

/**
 * Number of dials through one controller for one combination of service, terminator and result.
 */
export interface DialCount {
  readonly serviceId: string
  readonly terminatorId: string
  readonly result: DialResult
  readonly count: number
}

export function dialEvent(
  { serviceId, terminatorId, result, count }: DialCount,
  interval: { readonly fromMs: number; readonly toMs: number },
): NewEvent {
  const { fromMs, toMs } = interval
  return {
    namespace: 'service',
    atMs: toMs,
    weight: 384,
    fields: () => ({
      version: VERSION,
      event_type: types[result].name,
      service_id: serviceId,
      terminator_id: terminatorId,
      count,
      interval_start_utc: Math.floor(fromMs / MS_PER_SECOND),
      interval_length: Math.max(0, Math.round((toMs - fromMs) / MS_PER_SECOND)),
    }),
  }
}

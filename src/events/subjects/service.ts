import type { DialResult } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

const VERSION = 2
const MS_PER_SECOND = 1000

const types: Readonly<Record<DialResult, { readonly name: string; readonly when: string }>> = {
  success: { name: 'service.dial.success', when: 'a circuit was created' },
  fail: {
    name: 'service.dial.fail',
    when: 'no circuit could be created, after all attempts; `terminator_id` is empty if no terminator could be tried',
  },
  timeout: { name: 'service.dial.timeout', when: 'a router did not answer an attempt in time' },
  other: { name: 'service.dial.error_other', when: 'an attempt failed for another reason' },
  terminatorTimeout: {
    name: 'service.dial.terminator.timeout',
    when: 'the router of the terminator could not reach the host in time',
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

export const serviceSubject: EventSubject = {
  namespace: 'service',
  aliases: ['services'],
  about:
    'Number of dials of services through one controller in one interval. Every `events.metricsIntervalMs`, while anyone subscribes to these events, the controller emits one event for each combination of service, terminator and result.',
  typeField: 'event_type',
  types: Object.values(types).map(({ name, when }) => ({ name, emitter: 'itself', when })),
  fields: [
    { name: 'version', type: 'number', meaning: 'Version of this format: 2.' },
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'service_id', type: 'string', meaning: 'ID of the service that was dialed.' },
    {
      name: 'terminator_id',
      type: 'string',
      meaning: 'ID of the terminator that was tried; empty if none was tried.',
    },
    {
      name: 'count',
      type: 'number',
      meaning: 'Number of dials or attempts with this result in the interval.',
    },
    {
      name: 'interval_start_utc',
      type: 'number',
      meaning: 'Start of the interval, Unix time in s.',
    },
    { name: 'interval_length', type: 'number', meaning: 'Length of the interval, in s.' },
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

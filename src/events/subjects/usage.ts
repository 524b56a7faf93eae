import { type CircuitUsage, type UsageKind, usageKinds } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

const VERSION = 2

const counted: Readonly<Record<UsageKind, string>> = {
  'ingress.rx': 'bytes were read from the client at the first router of a circuit',
  'ingress.tx': 'bytes were written to the client at the first router of a circuit',
  'egress.rx': 'bytes were read from the host at the last router of a circuit',
  'egress.tx': 'bytes were written to the host at the last router of a circuit',
  'fabric.rx': 'bytes of a circuit were read from links',
  'fabric.tx': 'bytes of a circuit were written to links',
}

export const usageSubject: EventSubject = {
  namespace: 'usage',
  aliases: ['fabric.usage'],
  about:
    'Bytes that a router counted for a circuit in one interval; one event for each kind of traffic.',
  typeField: 'event_type',
  types: usageKinds.map((kind) => ({
    name: `usage.${kind}`,
    emitter: 'receiver',
    when: counted[kind],
  })),
  fields: [
    { name: 'version', type: 'number', meaning: 'Version of this format: 2.' },
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    {
      name: 'source_id',
      type: 'string',
      meaning:
        'ID of the router that counted the bytes. The following fields contain what this router reported.',
    },
    { name: 'circuit_id', type: 'string', meaning: 'ID of the circuit.' },
    { name: 'usage', type: 'number', meaning: 'Number of bytes.' },
    {
      name: 'interval_start_utc',
      type: 'number',
      meaning: 'Start of the interval, Unix time in s.',
    },
    { name: 'interval_length', type: 'number', meaning: 'Length of the interval, in s.' },
    {
      name: 'tags',
      type: 'object',
      meaning: '`clientId`, `hostId` and `serviceId`, each only if the router knows it.',
    },
  ],
}

export function usageEvent(
  { kind, circuitId, bytes, startS, lengthS, tags }: CircuitUsage,
  routerId: string,
  atMs: number,
): NewEvent {
  const tagged = Object.entries(tags).flat().join('').length
  return {
    namespace: 'usage',
    atMs,
    weight: 384 + circuitId.length + routerId.length + tagged,
    fields: () => ({
      version: VERSION,
      event_type: `usage.${kind}`,
      source_id: routerId,
      circuit_id: circuitId,
      usage: bytes,
      interval_start_utc: startS,
      interval_length: lengthS,
      tags,
    }),
  }
}

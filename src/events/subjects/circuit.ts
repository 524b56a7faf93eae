import type { Observation } from '../../ports/observations.ts'
import type { EventFields, EventSubject, NewEvent } from '../event-field.ts'

type CircuitFact = Extract<Observation, { readonly kind: 'circuit' }>
type FailedFact = Extract<Observation, { readonly kind: 'circuitFailed' }>

const VERSION = 2
const NS_PER_MS = 1_000_000

export const circuitSubject: EventSubject = {
  namespace: 'circuit',
  aliases: ['fabric.circuits'],
  about: 'A circuit was created, rerouted or ended, or could not be created.',
  typeField: 'event_type',
  types: [
    { name: 'created', emitter: 'observer', when: 'this controller created a circuit' },
    { name: 'pathUpdated', emitter: 'observer', when: 'a circuit was rerouted' },
    { name: 'deleted', emitter: 'observer', when: 'a circuit has ended' },
    { name: 'failed', emitter: 'observer', when: 'a circuit could not be created' },
  ],
  fields: [
    { name: 'version', type: 'number', meaning: 'Version of this format: 2.' },
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'circuit_id', type: 'string', meaning: 'ID of the circuit.' },
    {
      name: 'client_id',
      type: 'string',
      meaning:
        'ID of the service session; for a circuit without a service session, ID of the identity that dials.',
    },
    { name: 'service_id', type: 'string', meaning: 'ID of the service.' },
    { name: 'terminator_id', type: 'string', meaning: 'ID of the terminator; empty for `failed`.' },
    { name: 'instance_id', type: 'string', meaning: 'Instance ID that the client requested.' },
    {
      name: 'creation_timespan',
      type: 'number',
      meaning: 'Time that the creation of the circuit took, ns.',
      isOptional: true,
    },
    {
      name: 'path',
      type: 'object',
      meaning:
        '`nodes` (IDs of routers), `links` (IDs); `ingress_id` and `egress_id` are always empty.',
    },
    { name: 'link_count', type: 'number', meaning: 'Number of links on the path.' },
    { name: 'path_cost', type: 'number', meaning: 'Cost of the path.', isOptional: true },
    {
      name: 'failure_cause',
      type: 'string',
      meaning: 'Cause of the failure, for `failed`.',
      isOptional: true,
    },
    {
      name: 'duration',
      type: 'number',
      meaning: 'Lifetime of the circuit, for `deleted`, ns.',
      isOptional: true,
    },
    {
      name: 'tags',
      type: 'object',
      meaning:
        '`clientId` (the identity that dials), `serviceId` and, except for `failed`, `hostId` (the hosting identity).',
    },
  ],
}

export function circuitEvent(fact: CircuitFact, atMs: number): NewEvent {
  const { type, circuit: of, cost, hostId, instanceId, layMs } = fact
  const path = { nodes: of.routerIds, links: of.linkIds, ingress_id: '', egress_id: '' }
  return {
    namespace: 'circuit',
    atMs,
    weight: 640 + 64 * (of.routerIds.length + of.linkIds.length),
    fields: () => ({
      version: VERSION,
      event_type: type,
      circuit_id: of.id,
      client_id: of.sessionId || of.clientId,
      service_id: of.serviceId,
      terminator_id: of.terminatorId,
      instance_id: instanceId,
      ...optional('creation_timespan', layMs),
      path,
      link_count: of.linkIds.length,
      path_cost: cost,
      ...optional('duration', type === 'deleted' ? Math.max(0, atMs - of.createdAt) : undefined),
      tags: { clientId: of.clientId, hostId, serviceId: of.serviceId },
    }),
  }
}

export function circuitFailedEvent(fact: FailedFact, atMs: number): NewEvent {
  const { circuitId, clientId, sessionId, serviceId, instanceId, cause, layMs } = fact
  return {
    namespace: 'circuit',
    atMs,
    weight: 512 + cause.length,
    fields: () => ({
      version: VERSION,
      event_type: 'failed',
      circuit_id: circuitId,
      client_id: sessionId || clientId,
      service_id: serviceId,
      terminator_id: '',
      instance_id: instanceId,
      ...optional('creation_timespan', layMs),
      path: { nodes: [], links: [], ingress_id: '', egress_id: '' },
      link_count: 0,
      failure_cause: cause,
      tags: { clientId, serviceId },
    }),
  }
}

function optional(name: string, ms: number | undefined): EventFields {
  return ms === undefined ? {} : { [name]: Math.round(ms * NS_PER_MS) }
}

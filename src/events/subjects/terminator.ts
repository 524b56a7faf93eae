import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { EventSubject, NewEvent } from '../field.ts'

export const terminator: EventSubject = {
  namespace: 'terminator',
  aliases: ['fabric.terminators'],
  about:
    'A terminator became reachable or unreachable with its router. Its creation, changes and deletion are entity changes.',
  typeField: 'event_type',
  types: [
    { name: 'router-online', emitter: 'seer', when: 'its router has connected here' },
    { name: 'router-offline', emitter: 'seer', when: 'its router has left this controller' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'The type.' },
    { name: 'service_id', type: 'string', meaning: 'The service that is hosted.' },
    { name: 'terminator_id', type: 'string', meaning: 'ID of the terminator.' },
    { name: 'router_id', type: 'string', meaning: 'ID of its router.' },
    { name: 'host_id', type: 'string', meaning: 'ID of the hosting identity, or empty.' },
    {
      name: 'instance_id',
      type: 'string',
      meaning: 'Instance ID that the host gave the terminator.',
    },
    { name: 'router_online', type: 'boolean', meaning: 'The same as the type says.' },
    { name: 'precedence', type: 'string', meaning: '`default`, `required` or `failed`.' },
    { name: 'static_cost', type: 'number', meaning: 'As it is recorded.' },
    { name: 'dynamic_cost', type: 'number', meaning: 'Always 0: it is not known here.' },
    { name: 'total_terminators', type: 'number', meaning: 'Number of terminators of the service.' },
    {
      name: 'usable_default_terminators',
      type: 'number',
      meaning: 'How many of those are `default` at a router that is connected here.',
    },
    {
      name: 'usable_required_terminators',
      type: 'number',
      meaning: 'The same, `required`.',
    },
  ],
}

/** @param ofService all terminators of the terminator's service. */
export function terminatorEvent(
  one: Terminator,
  isOnline: boolean,
  ofService: readonly Terminator[],
  isConnected: (routerId: string) => boolean,
  atMs: number,
): NewEvent {
  const usable = (precedence: string): number =>
    ofService.filter((other) => other.precedence === precedence && isConnected(other.routerId))
      .length
  const counts = {
    total_terminators: ofService.length,
    usable_default_terminators: usable('default'),
    usable_required_terminators: usable('required'),
  }
  return {
    namespace: 'terminator',
    atMs,
    weight: 512,
    fields: () => ({
      event_type: isOnline ? 'router-online' : 'router-offline',
      service_id: one.serviceId,
      terminator_id: one.id,
      router_id: one.routerId,
      host_id: one.hostId,
      instance_id: one.instanceId,
      router_online: isOnline,
      precedence: one.precedence,
      static_cost: one.cost,
      dynamic_cost: 0,
      ...counts,
    }),
  }
}

import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const terminatorSubject: EventSubject = {
  namespace: 'terminator',
  aliases: ['fabric.terminators'],
  about:
    'The router of a terminator connected to this controller or disconnected, so the terminator became reachable or unreachable. The creation, change and deletion of a terminator cause events of the namespace entityChange.',
  typeField: 'event_type',
  types: [
    {
      name: 'router-online',
      emitter: 'observer',
      when: 'the router of the terminator has connected to this controller',
    },
    {
      name: 'router-offline',
      emitter: 'observer',
      when: 'the router of the terminator has disconnected from this controller',
    },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'service_id', type: 'string', meaning: 'ID of the service that is hosted.' },
    { name: 'terminator_id', type: 'string', meaning: 'ID of the terminator.' },
    { name: 'router_id', type: 'string', meaning: 'ID of the router of the terminator.' },
    { name: 'host_id', type: 'string', meaning: 'ID of the hosting identity, or empty.' },
    {
      name: 'instance_id',
      type: 'string',
      meaning: 'Instance ID that the host gave the terminator.',
    },
    {
      name: 'router_online',
      type: 'boolean',
      meaning: 'True for `router-online`, false for `router-offline`.',
    },
    { name: 'precedence', type: 'string', meaning: '`default`, `required` or `failed`.' },
    { name: 'static_cost', type: 'number', meaning: 'Cost in the record of the terminator.' },
    {
      name: 'dynamic_cost',
      type: 'number',
      meaning: 'Always 0, because the event does not include the dynamic cost.',
    },
    { name: 'total_terminators', type: 'number', meaning: 'Number of terminators of the service.' },
    {
      name: 'usable_default_terminators',
      type: 'number',
      meaning:
        'Number of terminators of the service with precedence `default` whose router is connected to this controller.',
    },
    {
      name: 'usable_required_terminators',
      type: 'number',
      meaning:
        'Number of terminators of the service with precedence `required` whose router is connected to this controller.',
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

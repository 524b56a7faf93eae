import type { Observation } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

type LinkFact = Extract<Observation, { readonly kind: 'link' }>

export const linkSubject: EventSubject = {
  namespace: 'link',
  aliases: ['fabric.links'],
  about: 'A router reported that a link to another router was added, changed or removed.',
  typeField: 'event_type',
  types: [
    {
      name: 'routerLinkNew',
      emitter: 'observer',
      when: 'a router reports a link for the first time',
    },
    {
      name: 'routerLinkDisconnectedDest',
      emitter: 'observer',
      when: 'a router reports a link for the first time, and the other router is not connected to this controller',
    },
    { name: 'routerLinkKnown', emitter: 'observer', when: 'a router reports a known link again' },
    { name: 'connectionsChanged', emitter: 'observer', when: 'the sockets of a link changed' },
    { name: 'fault', emitter: 'observer', when: 'a link was lost or removed' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'link_id', type: 'string', meaning: 'ID of the link.' },
    { name: 'src_router_id', type: 'string', meaning: 'ID of the router that dialed the link.' },
    { name: 'dst_router_id', type: 'string', meaning: 'ID of the router that was dialed.' },
    { name: 'protocol', type: 'string', meaning: 'Protocol of the link, such as `tls`.' },
    { name: 'dial_address', type: 'string', meaning: 'Address that was dialed.' },
    { name: 'cost', type: 'number', meaning: 'Sum of the static cost and the latencies.' },
    {
      name: 'connections',
      type: 'objects',
      meaning: 'Sockets of the link, each with `id`, `local_addr`, `remote_addr`.',
      isOptional: true,
    },
  ],
}

const types = {
  new: 'routerLinkNew',
  known: 'routerLinkKnown',
  disconnectedDest: 'routerLinkDisconnectedDest',
  connectionsChanged: 'connectionsChanged',
  fault: 'fault',
} as const

export function linkEvent({ type, link: of }: LinkFact, atMs: number): NewEvent {
  const connections = of.connections.map(({ type: id, sourceAddress, destAddress }) => ({
    id,
    local_addr: sourceAddress,
    remote_addr: destAddress,
  }))
  return {
    namespace: 'link',
    atMs,
    // @guard reports-of-a-router--links
    weight: 384 + textsOf(of).reduce((sum, { length }) => sum + length, 64 * connections.length),
    fields: () => ({
      event_type: types[type],
      link_id: of.id,
      src_router_id: of.sourceRouterId,
      dst_router_id: of.destRouterId,
      protocol: of.protocol,
      dial_address: of.dialAddress,
      cost: of.cost,
      ...(connections.length === 0 ? {} : { connections }),
    }),
  }
}

/**
 * Strings in a router's report about a link. The router determines their length, so the weight of
 * the event includes them.
 */
function textsOf({ id, protocol, dialAddress, connections }: LinkFact['link']): string[] {
  const ends = connections.map((each) => each.type + each.sourceAddress + each.destAddress)
  return [id, protocol, dialAddress, ...ends]
}

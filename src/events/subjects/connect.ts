import type { Observation } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

type ConnectFact = Extract<Observation, { readonly kind: 'connect' }>
type SdkFact = Extract<Observation, { readonly kind: 'sdk' }>

export const connectSubject: EventSubject = {
  namespace: 'connect',
  aliases: [],
  about:
    'A router or another controller has connected to this controller, or an identity has connected to an edge router that is connected to this controller.',
  typeField: null,
  types: [{ name: 'connect', emitter: 'observer', when: 'a connection was made' }],
  fields: [
    { name: 'src_type', type: 'string', meaning: '`router`, `peer` or `identity`.' },
    {
      name: 'src_id',
      type: 'string',
      meaning: 'ID of the router, controller or identity that connected.',
    },
    { name: 'src_addr', type: 'string', meaning: 'Address from which it connected.' },
    { name: 'dst_type', type: 'string', meaning: '`ctrl` or `router`.' },
    {
      name: 'dst_id',
      type: 'string',
      meaning: 'ID of the controller or router that accepted the connection.',
    },
    {
      name: 'dst_addr',
      type: 'string',
      meaning: 'Address at which the connection was accepted; empty for `peer`.',
    },
  ],
}

export const sdkSubject: EventSubject = {
  namespace: 'sdk',
  aliases: [],
  about:
    'An identity has connected to the first edge router, or has disconnected from the last edge router, among those that are connected to this controller.',
  typeField: 'event_type',
  types: [
    {
      name: 'sdk-online',
      emitter: 'observer',
      when: 'an edge router that is connected to this controller is the first to report that the identity is connected',
    },
    {
      name: 'sdk-offline',
      emitter: 'observer',
      when: 'no edge router that is connected to this controller reports the identity as connected any more',
    },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'identity_id', type: 'string', meaning: 'ID of the identity.' },
  ],
}

export function connectEvent(fact: ConnectFact, nowMs: number): NewEvent {
  const { source, sourceAddress, target, targetAddress } = fact
  return {
    namespace: 'connect',
    atMs: fact.atMs ?? nowMs,
    weight: 320 + source.id.length + sourceAddress.length + targetAddress.length,
    fields: () => ({
      src_type: source.type,
      src_id: source.id,
      src_addr: sourceAddress,
      dst_type: target.type,
      dst_id: target.id,
      dst_addr: targetAddress,
    }),
  }
}

export function sdkEvent({ identityId, status }: SdkFact, atMs: number): NewEvent {
  return {
    namespace: 'sdk',
    atMs,
    weight: 160 + identityId.length,
    fields: () => ({ event_type: `sdk-${status}`, identity_id: identityId }),
  }
}

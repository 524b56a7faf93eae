import type { MemberView } from '../../ports/cluster-view.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const clusterSubject: EventSubject = {
  namespace: 'cluster',
  aliases: ['fabric.cluster'],
  about:
    'A change of members, leadership or connections in the cluster, as one controller observes it.',
  typeField: 'eventType',
  types: [
    {
      name: 'peer.connected',
      emitter: 'observer',
      when: 'another controller connected to this controller',
    },
    {
      name: 'peer.disconnected',
      emitter: 'observer',
      when: 'another controller disconnected from this controller',
    },
    {
      name: 'members.changed',
      emitter: 'observer',
      when: 'a controller joined or left the cluster, or became or ceased to be a voter',
    },
    { name: 'leadership.gained', emitter: 'observer', when: 'this controller became leader' },
    { name: 'leadership.lost', emitter: 'observer', when: 'this controller is no longer leader' },
    {
      name: 'state.has_leader',
      emitter: 'observer',
      when: 'there is a leader, for the first time or again',
    },
    { name: 'state.is_leaderless', emitter: 'observer', when: 'there is no leader' },
    { name: 'state.ro', emitter: 'observer', when: 'writes through this controller fail' },
    { name: 'state.rw', emitter: 'observer', when: 'writes through this controller succeed again' },
  ],
  fields: [
    { name: 'eventType', type: 'string', meaning: 'Type of the event, from the table above.' },
    {
      name: 'index',
      type: 'number',
      meaning: 'Log index that this controller has applied.',
      isOptional: true,
    },
    {
      name: 'peers',
      type: 'objects',
      meaning:
        'For `members.*` all members, for `peer.*` only the other controller, each with `id`, `addr`, `version`, `apiAddresses` {name: [{`url`, `version`}]}, `isPreferredLeader` (always false).',
      isOptional: true,
    },
    {
      name: 'leaderId',
      type: 'string',
      meaning: 'ID of the leader, if there is one.',
      isOptional: true,
    },
  ],
}

interface ClusterFact {
  readonly type: string
  readonly index: number
  readonly members: readonly MemberView[]
  readonly leaderId: string | null
}

export function clusterEvent(
  { type, index, members, leaderId }: ClusterFact,
  atMs: number,
): NewEvent {
  return {
    namespace: 'cluster',
    atMs,
    weight: 256 + members.length * 512,
    fields: () => ({
      eventType: type,
      index,
      ...(members.length === 0 ? {} : { peers: members.map(peerOf) }),
      ...(leaderId === null ? {} : { leaderId }),
    }),
  }
}

function peerOf({
  id,
  address,
  version,
  apiAddresses,
}: MemberView): Readonly<Record<string, unknown>> {
  const byApi: Record<string, { url: string; version: string }[]> = {}
  for (const { api, url, version: of } of apiAddresses)
    (byApi[api] ??= []).push({ url, version: of })
  return { id, addr: `tls:${address}`, version, apiAddresses: byApi, isPreferredLeader: false }
}

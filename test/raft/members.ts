import { create, toBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  MemberSchema,
} from '../../proto/gen/membership_pb.ts'
import type { Entry, NodeId } from '../../src/raft/types.ts'

export interface MemberList {
  readonly voters: readonly NodeId[]
  readonly learners?: readonly NodeId[]
  /** Disk number of each member; 1 unless the member came back with another disk. */
  readonly stores?: ReadonlyMap<NodeId, number>
}

export function configurationOf(list: MemberList): ConfigurationRecord {
  const member = (id: NodeId, voter: boolean) =>
    create(MemberSchema, {
      id,
      voter,
      address: `${id}:1`,
      storeId: Uint8Array.of(list.stores?.get(id) ?? 1),
    })
  const members = [
    ...list.voters.map((id) => member(id, true)),
    ...(list.learners ?? []).map((id) => member(id, false)),
  ]
  return create(ConfigurationSchema, { members })
}

export const text = (value: string): Uint8Array => new TextEncoder().encode(value)

/** Log time of the initial entries. */
export const FORMED_MS = 1000

/** The initial log of a cluster, equal on all its members. */
export function formingEntries(record: ConfigurationRecord): Entry[] {
  const data = toBinary(ConfigurationSchema, record)
  return [
    { index: 1, term: 1, timeMs: FORMED_MS, type: 'configuration', data },
    { index: 2, term: 1, timeMs: FORMED_MS, type: 'command', data: text('form') },
  ]
}

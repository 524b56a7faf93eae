import { fromBinary } from '@bufbuild/protobuf'

import { type Configuration, ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { MembershipRecord } from '../../ports/membership-cache.ts'
import type { Index } from '../../raft/types.ts'
import { readMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'

/** Members that this controller knows before any contact with the cluster. */
export interface KnownMembership {
  readonly configuration: Configuration
  /** Log index of the configuration. */
  readonly index: Index
}

export function membershipFromRecord(roster: MembershipRecord | null): KnownMembership | null {
  if (roster === null) return null
  const configuration = fromBinary(ConfigurationSchema, roster.configuration)
  return { configuration, index: roster.index }
}

/**
 * The members in the membership cache of a data folder; null if the cache is missing or unreadable.
 */
export function readKnownMembership(dataFolder: string): KnownMembership | null {
  try {
    return membershipFromRecord(readMembershipCacheFile(dataFolder))
  } catch {
    return null
  }
}

/** Whether the newest of the given configurations contains voters other than `selfId`. */
export function hasOtherVoters(
  selfId: string,
  known: readonly (KnownMembership | null)[],
): boolean {
  const answered = known.filter((one) => one !== null && one.configuration.members.length > 0)
  const newest = answered.sort((a, b) => (b?.index ?? 0) - (a?.index ?? 0))[0]
  if (newest === undefined || newest === null) return false
  const { members, outgoingVoters } = newest.configuration
  return members.some(({ id, voter }) => id !== selfId && (voter || outgoingVoters.includes(id)))
}

/** Mesh addresses (host:port) of all members except `selfId`. */
export function otherMeshAddresses(
  selfId: string,
  known: KnownMembership | null,
): readonly string[] {
  const others = known?.configuration.members.filter(({ id }) => id !== selfId) ?? []
  return others.map(({ address }) => address).filter((address) => address !== '')
}

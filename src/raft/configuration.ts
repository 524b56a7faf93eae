import { clone, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  type Member,
} from '../../proto/gen/membership_pb.ts'
import { assert, requirePresent } from '../lib/assert.ts'
import type { Configuration, Entry, Index, NodeId } from './types.ts'

/**
 * A configuration, and the index of the log entry that contains it. If this node read the
 * configuration from its state at the start or from a snapshot, `index` is the index of that state
 * or snapshot.
 */
export interface Membership {
  readonly index: Index
  readonly record: ConfigurationRecord
  readonly configuration: Configuration
}

/**
 * True during a change of members. Every decision then needs two majorities: one of the old and one
 * of the new voters.
 */
export function isJoint(configuration: Configuration): boolean {
  return configuration.outgoingVoters.length > 0
}

/** True for a voter of the old or of the new half of a joint configuration. */
export function isVoter(configuration: Configuration, id: NodeId): boolean {
  return configuration.voters.includes(id) || configuration.outgoingVoters.includes(id)
}

/**
 * Ids of all members, sorted: the voters of both halves of a joint configuration, and the learners.
 */
export function memberIds(configuration: Configuration): readonly NodeId[] {
  const { voters, outgoingVoters, learners } = configuration
  return [...new Set([...voters, ...outgoingVoters, ...learners])].sort()
}

/**
 * Derives voters and learners from a configuration record. An old voter that becomes a learner is
 * still a voter during the change.
 */
export function configurationFromRecord(record: ConfigurationRecord): Configuration {
  const outgoingVoters = [...record.outgoingVoters].sort()
  const voters = record.members.filter((member) => member.voter).map((member) => member.id)
  const learners = record.members
    .filter((member) => !member.voter && !outgoingVoters.includes(member.id))
    .map((member) => member.id)
  return { voters: voters.sort(), outgoingVoters, learners: learners.sort() }
}

export function encodeConfiguration(record: ConfigurationRecord): Uint8Array {
  return toBinary(ConfigurationSchema, record)
}

/**
 * Decodes a configuration from a log entry, a state or a snapshot.
 * @throws {AssertionError} when the configuration has no voters.
 */
export function decodeMembership(index: Index, data: Uint8Array): Membership {
  const record = fromBinary(ConfigurationSchema, data)
  const configuration = configurationFromRecord(record)
  assert(configuration.voters.length > 0, `configuration ${index} has no voters`)
  return { index, record, configuration }
}

/**
 * Whether a configuration can be the target of a change.
 * @returns false if it has no voters, has an empty or repeated id, or sets fields that only a
 * change in progress uses (`leaving`, `outgoingVoters`).
 */
export function isWellFormedTarget(target: ConfigurationRecord): boolean {
  const ids = target.members.map((member) => member.id)
  return (
    target.members.some((member) => member.voter) &&
    target.members.every((member) => member.id !== '' && !member.leaving) &&
    target.outgoingVoters.length === 0 &&
    new Set(ids).size === ids.length
  )
}

/**
 * First step of every change (Raft paper 6): decisions need a majority of the old voters and a
 * majority of the new voters. Voters that leave stay in the list until the second step, so that the
 * leader can still reach and count them. Learners that leave are removed immediately.
 */
export function enterJointConfiguration(
  current: ConfigurationRecord,
  target: ConfigurationRecord,
): ConfigurationRecord {
  assert(current.outgoingVoters.length === 0, 'a change starts from a configuration at rest')
  const joint = clone(ConfigurationSchema, target)
  joint.outgoingVoters = configurationFromRecord(current).voters.slice()
  const kept = new Set(joint.members.map((member) => member.id))
  for (const member of clone(ConfigurationSchema, current).members) {
    if (!member.voter || kept.has(member.id)) continue
    member.voter = false
    member.leaving = true
    joint.members.push(member)
  }
  joint.members.sort((a, b) => (a.id < b.id ? -1 : 1))
  return joint
}

/** Second step of a change: the new voters decide without the old ones. */
export function leaveJointConfiguration(joint: ConfigurationRecord): ConfigurationRecord {
  assert(joint.outgoingVoters.length > 0, 'only a joint configuration is left')
  const left = clone(ConfigurationSchema, joint)
  left.members = left.members.filter((member) => !member.leaving)
  left.outgoingVoters = []
  return left
}

/**
 * True when the member's disk was replaced. The new disk lacks the entries that the old disk
 * acknowledged.
 */
export function hasOtherStore(before: Member, after: Member): boolean {
  return !isSameBytes(before.storeId, after.storeId)
}

function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}

/**
 * Whether the record lists this member with this disk. If `storeId` is null, only the name is
 * compared.
 */
export function hasMemberStore(
  record: ConfigurationRecord,
  id: NodeId,
  storeId: Uint8Array | null,
): boolean {
  const member = record.members.find((known) => known.id === id)
  if (member === undefined) return false
  return storeId === null || isSameBytes(member.storeId, storeId)
}

/**
 * The configuration that applied at the start of this node, at the last compaction or at the last
 * snapshot, whichever is latest, and all later configurations, oldest first. A configuration takes
 * effect as soon as it is appended (Raft paper 6); if its entry is truncated, the previous one
 * takes effect again.
 */
export class MembershipHistory {
  #items: Membership[]

  constructor(start: Membership) {
    this.#items = [start]
  }

  get current(): Membership {
    return requirePresent(this.#items.at(-1), 'there is always a configuration')
  }

  /**
   * The newest configuration at or before the index `commit`, and all configurations appended after
   * it. One of them applies wherever the log is truncated after `commit`.
   */
  notOvertaken(commit: Index): readonly Membership[] {
    const newer = this.#items.findIndex(({ index }) => index > commit)
    return newer < 0 ? this.#items.slice(-1) : this.#items.slice(Math.max(0, newer - 1))
  }

  /**
   * Adds the configurations among appended entries.
   * @returns whether the current configuration changed.
   */
  append(entries: readonly Entry[]): boolean {
    const before = this.#items.length
    for (const entry of entries) {
      if (entry.type !== 'configuration' || entry.index <= this.current.index) continue
      this.#items.push(decodeMembership(entry.index, entry.data))
    }
    return this.#items.length > before
  }

  /**
   * Removes the configurations at index `from` and later.
   * @returns whether the current configuration changed.
   */
  truncate(from: Index): boolean {
    const before = this.#items.length
    while (this.current.index >= from) {
      assert(this.#items.length > 1, 'the configuration the log began with is never truncated')
      this.#items.pop()
    }
    return this.#items.length < before
  }

  /** Drops configurations older than the one that applied at `index`. */
  compact(index: Index): void {
    while ((this.#items[1]?.index ?? Infinity) <= index) this.#items.shift()
  }

  reset(start: Membership): void {
    this.#items = [start]
  }
}

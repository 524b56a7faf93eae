import { clone, create, type MessageInitShape } from '@bufbuild/protobuf'

import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  MemberSchema,
} from '../../../proto/gen/membership_pb.ts'
import type { AdmissionRequest, AdmissionRequestSchema } from '../../../proto/gen/peer_pb.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import { membershipLimits } from './limits.ts'
import { readBoundedText, readFixedLengthBytes, readCount } from './messages.ts'
import { deleteRemovedKey, isSameMemberKey, isSameBytes } from './member-keys.ts'

/** Facts in an admission request. The caller reports them; TLS has proven only its id and key. */
export interface AdmissionRequestFacts {
  readonly clusterId: string
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of its mesh. */
  readonly address: string
  readonly version: string
  readonly featureLevel: number
  /**
   * Start time of the caller's process, UTC ms. It distinguishes the process from another one with
   * the same data folder.
   */
  readonly startedAtMs: number
}

/** The caller's id and key, as TLS has proven them. */
export interface AdmissionCaller {
  readonly id: NodeId
  readonly publicKeySha256: Uint8Array
}

export type AdmissionRefusalReason =
  | 'not-admitted'
  | 'removed'
  | 'other-key'
  | 'other-cluster'
  | 'store-in-use'
  | 'full'
  | 'too-old'

/**
 * `added`: the caller becomes a learner. `member`: the caller is already a member with this key and
 * store. `returning`: the caller is a member with another store, and its record gets the new store.
 */
export type AdmissionOutcome =
  | {
      readonly outcome: 'member' | 'added' | 'returning'
      readonly clusterId: string
      readonly generation: number
      /**
       * Encoded membership.v1.Configuration, which is committed; `configurationIndex` is its log
       * index.
       */
      readonly configuration: Uint8Array
      readonly configurationIndex: Index
    }
  | {
      readonly outcome: 'refused'
      readonly reason: AdmissionRefusalReason
      /** Reason for the decision, as one sentence with a remedy. */
      readonly detail: string
      readonly configurationIndex: Index
    }

/** Facts that the leader knows and that the decision about the caller needs. */
export interface AdmissionContext {
  readonly record: ConfigurationRecord
  readonly configurationIndex: Index
  readonly clusterId: string
  /** The cluster's feature level. */
  readonly featureLevel: number
  /**
   * Key with which the caller's id was admitted, and whether the controller becomes a voter; null
   * without an admission.
   */
  readonly admitted: { readonly keySha256: Uint8Array; readonly isVoter: boolean } | null
  /**
   * Start time of the process that is connected under this member's id; null if none is connected.
   */
  readonly liveStartedAtMs: number | null
}

export type AdmissionVerdict =
  | { readonly verdict: 'member' }
  | { readonly verdict: 'added' | 'returning'; readonly target: ConfigurationRecord }
  | {
      readonly verdict: 'refused'
      readonly reason: AdmissionRefusalReason
      readonly detail: string
    }

/**
 * Decides whether and how a controller is admitted. Pure. A new controller is always a learner
 * first: it counts for commits only after it has caught up.
 */
export function decideAdmission(
  caller: AdmissionCaller,
  request: AdmissionRequestFacts,
  context: AdmissionContext,
): AdmissionVerdict {
  const { id } = caller
  if (request.clusterId !== '' && request.clusterId !== context.clusterId) {
    return refused('other-cluster', `${id} belongs to another cluster; check cluster.seeds`)
  }
  const member = context.record.members.find((known) => known.id === id)
  if (member !== undefined && isSameMemberKey(member, caller.publicKeySha256)) {
    return decideForMember(caller, request, context)
  }
  const { admitted } = context
  if (member !== undefined) {
    return refused(
      'other-key',
      `${id} is registered with another key; start it with the certificate it joined with, or remove it and join again with a new ticket`,
    )
  }
  // A removed member keeps its admission until the removal is complete, so an admission does not
  // prove membership.
  if (admitted === null || isDeparted(caller, context)) return refusedStranger(caller, context)
  if (!isSameBytes(admitted.keySha256, caller.publicKeySha256)) {
    return refused(
      'other-key',
      `${id} was admitted with another key; start it with the certificate of its last join, or remove ${id} and join again with a new ticket`,
    )
  }
  const tooOld = refusedOlder(id, request, context)
  if (tooOld !== null) return tooOld
  if (context.record.members.length >= membershipLimits.membersMax) {
    return refused(
      'full',
      `the cluster has the maximum of ${membershipLimits.membersMax} members; remove one first`,
    )
  }
  const target = clone(ConfigurationSchema, context.record)
  const { storeId, address } = request
  const { publicKeySha256 } = caller
  const promote = admitted.isVoter
  deleteRemovedKey(target, caller)
  target.members.push(create(MemberSchema, { id, address, storeId, publicKeySha256, promote }))
  target.members.sort((a, b) => (a.id < b.id ? -1 : 1))
  return { verdict: 'added', target }
}

/** Decides about a caller whose key is the pinned key of a member. */
function decideForMember(
  { id }: AdmissionCaller,
  request: AdmissionRequestFacts,
  context: AdmissionContext,
): AdmissionVerdict {
  const { record, liveStartedAtMs } = context
  const target = clone(ConfigurationSchema, record)
  const member = target.members.find((known) => known.id === id)
  const isSameStore = member !== undefined && isSameBytes(member.storeId, request.storeId)
  const isOtherProcess = liveStartedAtMs !== null && liveStartedAtMs !== request.startedAtMs
  if (isOtherProcess || (liveStartedAtMs !== null && !isSameStore)) {
    return refused(
      'store-in-use',
      `${id} is running already, with ${isSameStore ? 'a copy of this' : 'another'} data folder; stop one of the two processes`,
    )
  }
  if (member === undefined || isSameStore) return { verdict: 'member' }
  const tooOld = refusedOlder(id, request, context)
  if (tooOld !== null) return tooOld
  const isWaitedFor = member.voter || member.returning
  member.storeId = request.storeId
  member.address = request.address
  member.promote = isWaitedFor || member.promote
  member.returning = isWaitedFor
  member.voter = false
  if (target.members.some(({ voter }) => voter)) return { verdict: 'returning', target }
  return refused('store-in-use', `${id} is the last voter and leader; no other member can admit it`)
}

/**
 * Refuses a release that does not support the current feature level, because it could not apply the
 * log and would never catch up.
 */
function refusedOlder(
  id: NodeId,
  { featureLevel: known }: AdmissionRequestFacts,
  { featureLevel: inForce }: AdmissionContext,
): AdmissionVerdict | null {
  if (known >= inForce) return null
  return refused(
    'too-old',
    `the cluster is at feature level ${inForce} and ${id} supports up to ${known}; install the version that the cluster runs`,
  )
}

function isDeparted(
  { id, publicKeySha256 }: AdmissionCaller,
  { record }: AdmissionContext,
): boolean {
  return record.departed.some(
    (departure) => departure.id === id && isSameMemberKey(departure, publicKeySha256),
  )
}

function refusedStranger(caller: AdmissionCaller, context: AdmissionContext): AdmissionVerdict {
  const { id } = caller
  const { configurationIndex } = context
  const isRemoved = isDeparted(caller, context)
  const detail = `not a member as of configuration ${configurationIndex} and no valid admission`
  return refused(
    isRemoved ? 'removed' : 'not-admitted',
    `${id} ${isRemoved ? 'was removed: ' : 'admission denied: '}${detail}; join with a new ticket (flotilla cluster invite, then flotilla cluster join)`,
  )
}

function refused(reason: AdmissionRefusalReason, detail: string): AdmissionVerdict {
  return { verdict: 'refused', reason, detail }
}

export function encodeAdmissionRequest(
  request: AdmissionRequestFacts,
): MessageInitShape<typeof AdmissionRequestSchema> {
  return { ...request, startedAtMs: BigInt(request.startedAtMs) }
}

/**
 * Decodes the facts of an admission request.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function decodeAdmissionRequest(message: AdmissionRequest): AdmissionRequestFacts {
  return {
    clusterId: readBoundedText(message.clusterId, 'clusterId'),
    storeId: readFixedLengthBytes(message.storeId, 'storeId', 16),
    address: readBoundedText(message.address, 'address'),
    version: readBoundedText(message.version, 'version'),
    featureLevel: message.featureLevel,
    startedAtMs: readCount(message.startedAtMs, 'startedAtMs'),
  }
}

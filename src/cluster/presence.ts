import { create } from '@bufbuild/protobuf'

import { PresenceSchema } from '../../proto/gen/mesh_pb.ts'
import type { ForwardFrame, Presence } from '../../proto/gen/mesh_pb.ts'
import type { CoreStatus } from '../raft/effects.ts'
import type { NodeId } from '../raft/types.ts'
import type { PresenceStatus } from './link.ts'
import { integer } from './message-codec.ts'

/** Of a digest or a role in it; a longer one is cut, as it is only compared or shown. */
const TEXT_BYTES_MAX = 64

export function encodePresence(nodeId: NodeId, presence: PresenceStatus): ForwardFrame['frame'] {
  const { applied, persisted, digestIndex, digest, entitiesDigest, role, term, commit } = presence
  const value = create(PresenceSchema, {
    nodeId,
    term: BigInt(term),
    commit: BigInt(commit),
    applied: BigInt(applied),
    persisted: BigInt(persisted),
    digestIndex: BigInt(digestIndex),
    digest: Uint8Array.from(Buffer.from(digest, 'hex')),
    role,
    entitiesDigestIndex: BigInt(digestIndex),
    entitiesDigest: Uint8Array.from(Buffer.from(entitiesDigest, 'hex')),
  })
  return { case: 'presence', value }
}

/** @throws {RangeError} when a number is beyond a safe integer. */
export function decodePresence(presence: Presence): PresenceStatus {
  const hex = (bytes: Uint8Array): string =>
    Buffer.from(bytes.subarray(0, TEXT_BYTES_MAX)).toString('hex')
  return {
    term: integer(presence.term),
    commit: integer(presence.commit),
    applied: integer(presence.applied),
    persisted: integer(presence.persisted),
    digestIndex: integer(presence.digestIndex),
    digest: hex(presence.digest),
    entitiesDigest: hex(presence.entitiesDigest),
    role: presence.role.slice(0, TEXT_BYTES_MAX),
  }
}

/** Raft knows a learner only by its absence from the voters; people look for the word. */
export function roleToShow(status: CoreStatus, selfId: NodeId): string {
  const { voters, outgoingVoters } = status.configuration
  return voters.includes(selfId) || outgoingVoters.includes(selfId) ? status.role : 'learner'
}

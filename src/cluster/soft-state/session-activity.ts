import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { SessionUseSchema } from '../../../proto/gen/soft_pb.ts'
import type { SoftState, SoftTopic } from '../../ports/soft-state.ts'
import { integer } from '../message-codec.ts'

/** Whoever hears a use keeps it, so that it matters little when its owner falls silent. */
const TTL_MS = 60_000
/** Above what `activitySessionsMax` sessions take, with ids of 36 characters. */
const OWNER_BYTES_MAX = 16 * 1024 * 1024

/** Last uses of sessions, UTC ms by session id.. */
export function sessionActivity(soft: SoftState): SoftTopic<number> {
  return soft.topic<number>({
    name: 'activity',
    encode: (atMs) => toBinary(SessionUseSchema, create(SessionUseSchema, { atMs: BigInt(atMs) })),
    decode: (bytes) => integer(fromBinary(SessionUseSchema, bytes).atMs),
    ttlMs: TTL_MS,
    ownerBytesMax: OWNER_BYTES_MAX,
  })
}

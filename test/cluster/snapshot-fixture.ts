import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { create } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { PositionSchema, type SnapshotChunk, SnapshotChunkSchema } from '../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { encodeConfiguration } from '../../src/raft/configuration.ts'

export class ManualClock implements Clock {
  atMs = 0
  nowMs(): number {
    return this.atMs
  }
  monotonicMs(): number {
    return this.atMs
  }
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const configuration = encodeConfiguration(
  create(ConfigurationSchema, { members: [{ id: 'leader', voter: true }] }),
)
export const snapshotId = Uint8Array.from(Array(16).keys())
export const first = bytes('first-')
export const second = bytes('second-')

/** One of the two chunks of a snapshot, with the data `first` and `second` by default. */
export function chunk(
  number: number,
  data: Uint8Array,
  changes: Partial<SnapshotChunk> = {},
): SnapshotChunk {
  const isLast = number === 1
  const made = create(SnapshotChunkSchema, {
    snapshotId,
    number,
    data,
    last: isLast,
    crc32: crc32(data),
  })
  if (number === 0) {
    made.position = create(PositionSchema, { term: 2n, index: 50n })
    made.configuration = configuration
  }
  const whole = Buffer.concat([first, second])
  if (isLast) made.sha256 = Uint8Array.from(createHash('sha256').update(whole).digest())
  return Object.assign(made, changes)
}

import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { create } from '@bufbuild/protobuf'

import {
  PositionSchema,
  type SnapshotChunk,
  SnapshotChunkSchema,
} from '../../../proto/gen/mesh_pb.ts'
import type { StoreSnapshot } from '../../ports/state-store.ts'
import type { Position } from '../../raft/types.ts'

// Format of a state that one controller sends to another. The sender splits its bytes into numbered
// chunks with checksums, and the receiver verifies them.

export interface StatePiece {
  readonly data: Uint8Array<ArrayBuffer>
  readonly isLast: boolean
}

/**
 * The bytes of a store in pieces. Each piece is a copy, because a chunk of the store may be a view
 * of memory with another owner. The generator yields a piece only after it knows whether another
 * one follows, so that it can mark the last one.
 */
export async function* copyStatePieces(
  snapshot: Pick<StoreSnapshot, 'chunks'>,
  pieceBytesMax = Infinity,
): AsyncGenerator<StatePiece, void> {
  let held: Uint8Array<ArrayBuffer> | null = null
  for await (const chunk of snapshot.chunks()) {
    for (let at = 0; at < chunk.length; at += pieceBytesMax) {
      if (held !== null) yield { data: held, isLast: false }
      held = Uint8Array.from(chunk.subarray(at, at + pieceBytesMax))
    }
  }
  yield { data: held ?? new Uint8Array(0), isLast: true }
}

export interface TransferredStateHeader {
  /** 16 bytes, unique for each transfer. */
  readonly snapshotId: Uint8Array
  readonly position: Position
  /** Encoded membership.v1.Configuration at the position of the state. */
  readonly configuration: Uint8Array
}

/**
 * Numbers the pieces of one transfer. The first chunk has the position of the state, and the last
 * one has the checksum of all bytes.
 */
export class StateChunkEncoder {
  readonly #hash = createHash('sha256')
  #next = 0

  make(
    state: TransferredStateHeader,
    { data, isLast }: Omit<StatePiece, 'data'> & { data: Uint8Array },
  ): SnapshotChunk {
    this.#hash.update(data)
    const { snapshotId, configuration, position } = state
    const chunk = create(SnapshotChunkSchema, {
      snapshotId,
      number: this.#next,
      data,
      crc32: crc32(data),
      last: isLast,
    })
    if (this.#next === 0) {
      const { term, index } = position
      chunk.configuration = configuration
      chunk.position = create(PositionSchema, { term: BigInt(term), index: BigInt(index) })
    }
    if (isLast) chunk.sha256 = Uint8Array.from(this.#hash.digest())
    this.#next += 1
    return chunk
  }
}

/** Verifies the chunks of one transfer. */
export class StateChunkVerifier {
  readonly #hash = createHash('sha256')
  readonly #chunkBytesMax: number
  #received = 0
  #isWhole = false

  constructor(chunkBytesMax: number) {
    this.#chunkBytesMax = chunkBytesMax
  }

  /** Number of accepted chunks, which is also the number of the next chunk. */
  get received(): number {
    return this.#received
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /**
   * Verifies the next chunk.
   * @returns the reason why the chunk is invalid; null when it is accepted.
   */
  take({ number, data, crc32: sum, last, sha256 }: SnapshotChunk): string | null {
    if (this.#isWhole) return `unexpected chunk ${number} after the last one`
    if (number !== this.#received) return `received chunk ${number}, expected ${this.#received}`
    if (data.length > this.#chunkBytesMax) return `chunk ${number} is too large`
    // An empty chunk is refused: it makes no progress, so a sender could continue forever.
    if (data.length === 0) return `chunk ${number} is empty`
    // @guard crc-of-a-snapshot-chunk
    if (crc32(data) !== sum) return `chunk ${number} is damaged`
    this.#hash.update(data)
    // @guard checksum-of-a-snapshot-on-the-way
    if (last && Buffer.compare(this.#hash.digest(), sha256) !== 0) {
      return 'checksum mismatch'
    }
    this.#received += 1
    this.#isWhole = last
    return null
  }
}

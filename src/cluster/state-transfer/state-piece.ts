import { create } from '@bufbuild/protobuf'

import { type SnapshotChunk, SnapshotChunkSchema } from '../../../proto/gen/mesh_pb.ts'
import { crc32 } from 'node:zlib'
import { Problem } from '../../lib/problems.ts'

// The form in which release 0.1 reads out a state: a byte, 1 before the last piece, which then has
// the SHA-256 of them all before its bytes.

const HEAD_BYTES = 1
const SHA256_BYTES = 32

export function encodePiece({ data, last, sha256 }: SnapshotChunk): Uint8Array {
  return Buffer.concat([Uint8Array.of(last ? 1 : 0), ...(last ? [sha256] : []), data])
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function decodePiece(piece: Uint8Array, number: number): SnapshotChunk {
  const last = piece[0] === 1
  const head = HEAD_BYTES + (last ? SHA256_BYTES : 0)
  if (piece.length < head) {
    throw new Problem('COULD_NOT_VALIDATE', { detail: `piece ${number} is cut off` })
  }
  const data = piece.subarray(head)
  const sha256 = piece.subarray(HEAD_BYTES, head)
  return create(SnapshotChunkSchema, { number, data, crc32: crc32(data), last, sha256 })
}

import { createHash } from 'node:crypto'

import { compressLines, blockLine } from '../fsm/records/record-blocks.ts'
import { restoredKinds } from '../fsm/cluster/replacement.ts'
import { restoreLimits } from '../fsm/records/restore-limits.ts'
import type { State } from '../fsm/records/state.ts'
import { BackupFault } from './backup-fault.ts'

/** A chunk of restore content; each chunk is stored by one log entry. */
interface ContentChunk {
  readonly bytes: Uint8Array
  readonly endsBlock: boolean
}

/** The records of a backup, in chunks from which a running cluster restores them. */
export interface RestoreContent {
  readonly chunks: readonly ContentChunk[]
  /** Total bytes of all chunks. */
  readonly bytes: number
  /** SHA-256 over all chunks in order, in hex. */
  readonly sha256: string
}

/**
 * Splits the records of a state into chunks for the log.
 * @param state must be without sessions (`removeSessions`).
 * @throws {BackupFault} TOO_LARGE.
 */
export function splitRestoreContent(state: State): RestoreContent {
  const chunks: ContentChunk[] = []
  const sum = createHash('sha256')
  let bytes = 0
  for (const block of compressLines(linesOf(state))) {
    bytes += block.length
    if (bytes > restoreLimits.stagedBytesMax) throw tooLarge()
    sum.update(block)
    chunks.push(...chunksOf(block))
  }
  return { chunks, bytes, sha256: sum.digest('hex') }
}

function* linesOf(state: State): Generator<string> {
  for (const kind of restoredKinds) {
    const table = state.table(kind)
    for (const { record } of table.rows.values()) yield blockLine(kind, table.stored(record))
  }
}

function chunksOf(block: Uint8Array): ContentChunk[] {
  const chunks: ContentChunk[] = []
  for (let at = 0; at < block.length; at += restoreLimits.chunkBytesMax) {
    const end = at + restoreLimits.chunkBytesMax
    chunks.push({ bytes: block.subarray(at, end), endsBlock: end >= block.length })
  }
  return chunks
}

function tooLarge(): BackupFault {
  return new BackupFault(
    'TOO_LARGE',
    `the records of the backup take more than ${restoreLimits.stagedBytesMax} bytes compressed, which is more than a running cluster stages; restore it into a new cluster`,
  )
}

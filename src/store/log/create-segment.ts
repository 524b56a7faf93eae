import type { Position } from '../../raft/types.ts'
import type { FileSystem } from '../file-system.ts'
import type { SegmentPreparer } from './segment-preparer.ts'
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from './wal-format.ts'

interface NewSegment {
  readonly fd: number
  readonly path: string
  /** Size of the segment file in bytes. */
  readonly bytes: number
}

/**
 * Creates a segment that continues the log after `previous`. When the function returns, the segment
 * is durable under its name.
 */
export function createSegment(
  files: FileSystem,
  folder: string,
  preparer: SegmentPreparer,
  segment: {
    readonly storeId: Uint8Array
    readonly sequence: number
    readonly isReset: boolean
    readonly previous: Position
    readonly previousChain: Uint8Array
    /** Size of the first record; the segment must have room for it. */
    readonly recordBytes: number
  },
): NewSegment {
  const { recordBytes, ...header } = segment
  const { fd, path: prepared, bytes } = preparer.take(SEGMENT_HEADER_BYTES + recordBytes)
  files.write(fd, prepared, encodeSegmentHeader({ ...header, fileBytes: bytes }), 0)
  files.sync(fd, prepared)
  const path = `${folder}/${segmentName(segment.previous.index + 1, segment.sequence)}`
  files.rename(prepared, path)
  // @guard 32-new-file-without-a-synced-folder
  files.syncFolder(folder)
  return { fd, path, bytes }
}

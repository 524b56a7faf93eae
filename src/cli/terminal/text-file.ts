import { closeSync, openSync, readSync } from 'node:fs'
import { decodeText } from '../../lib/text/decode-text.ts'

/**
 * Default maximum size of a file that a command reads, such as record fields, certificates or
 * changes.
 */
const TEXT_FILE_BYTES_MAX = 4 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024

/**
 * Reads a file, or a pipe from a shell, whose size is not known in advance.
 * @throws {Error} whose message is a clause to be used within a sentence, if the content is longer
 * than `bytesMax`; errors from the file system.
 */
export function readTextFile(path: string, bytesMax = TEXT_FILE_BYTES_MAX): string {
  const file = openSync(path, 'r')
  try {
    const chunks: Buffer[] = []
    let bytes = 0
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const count = readSync(file, chunk)
      if (count === 0) return decodeText(Buffer.concat(chunks))
      bytes += count
      if (bytes > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`)
      chunks.push(chunk.subarray(0, count))
    }
  } finally {
    closeSync(file)
  }
}

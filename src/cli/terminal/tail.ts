import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The end of a file from the beginning of a line, at most `bytesMax` bytes. */
export function readFileTail(path: string, bytesMax: number): Buffer {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.alloc(Math.min(size, bytesMax))
    const read = readSync(file, bytes, 0, bytes.length, size - bytes.length)
    const found = bytes.subarray(0, read)
    return size > bytesMax ? found.subarray(found.indexOf(10) + 1) : found
  } finally {
    closeSync(file)
  }
}

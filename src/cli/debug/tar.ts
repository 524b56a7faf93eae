/** A regular file in the POSIX tar format (ustar), which every tar program can read. */
export interface TarFile {
  /** Up to 100 bytes. */
  readonly name: string
  readonly bytes: Uint8Array
}

const BLOCK_BYTES = 512
const NAME_BYTES_MAX = 100

/** An uncompressed archive. */
export function buildTarArchive(files: readonly TarFile[], mtimeMs: number): Buffer {
  const blocks = files.flatMap(({ name, bytes }) => [
    headerOf(name, bytes.length, mtimeMs),
    padded(bytes),
  ])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

function padded(bytes: Uint8Array): Buffer {
  const rest = (BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES
  return Buffer.concat([bytes, Buffer.alloc(rest)])
}

function headerOf(name: string, size: number, mtimeMs: number): Buffer {
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) throw new RangeError(`${name} is too long for tar`)
  const header = Buffer.alloc(BLOCK_BYTES)
  header.write(name, 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(octal(size), 124)
  header.write(octal(Math.floor(mtimeMs / 1000)), 136)
  // The checksum is computed over the header with blanks in place of the checksum.
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

function octal(value: number): string {
  return `${value.toString(8).padStart(11, '0')}\0`
}

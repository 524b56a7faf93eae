/** Smaller buffers are left to the garbage collector, which costs less than this call. */
const LARGE_BYTES = 64 * 1024

/**
 * Frees the memory of a large buffer at once; `bytes` and all its views are empty afterwards.
 * Buffers do not count toward the heap size, so hundreds of megabytes may accumulate before a
 * collection. A view of a part of a buffer is left alone.
 */
export function releaseBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes
  const isWhole = bytes.byteLength === buffer.byteLength
  if (!isWhole || bytes.byteLength < LARGE_BYTES || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

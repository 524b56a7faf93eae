/** Smaller ones are left to the garbage collection, which costs less than each of these calls. */
const LARGE_BYTES = 64 * 1024

/**
 * Gives the memory of a large buffer back at once; `bytes` and all views of it are empty after
 * that. Buffers weigh nothing on the heap, so that a collection may find hundreds of megabytes of
 * them only when it is late. What does not own all of its memory is left alone.
 */
export function releaseBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes
  const isWhole = bytes.byteLength === buffer.byteLength
  if (!isWhole || bytes.byteLength < LARGE_BYTES || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

/**
 * Smaller buffers are left to the garbage collector, which costs less than releasing them here.
 */
const LARGE_BYTES = 64 * 1024

/**
 * Frees the memory of a large buffer immediately; `bytes` and all other views of the buffer are
 * empty afterwards. Buffers do not count toward the heap size, so hundreds of megabytes may
 * accumulate before a garbage collection. If `bytes` is small, or only a part of its buffer, this
 * function frees nothing.
 */
export function releaseBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes
  const isWhole = bytes.byteLength === buffer.byteLength
  if (!isWhole || bytes.byteLength < LARGE_BYTES || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}

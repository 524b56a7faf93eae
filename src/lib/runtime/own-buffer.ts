/**
 * The same bytes alone in their buffer, so that the buffer can be transferred to another thread. A
 * view of a larger buffer is copied: the clone of a view has all of its buffer. Empty bytes always
 * get a new buffer: the decoder of messages may share one for all empty fields, and a buffer that
 * was transferred cannot be transferred again.
 */
export function inOwnBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength === 0) return new Uint8Array(0)
  const { buffer } = bytes
  const isAlone = buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

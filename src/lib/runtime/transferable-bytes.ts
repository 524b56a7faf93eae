/**
 * Returns the bytes in a buffer that contains nothing else, so that the buffer can be transferred
 * to another thread. A view of a larger buffer is copied, because cloning a view clones the whole
 * buffer. Empty bytes always get a new buffer: the message decoder may share one buffer for all
 * empty fields, and a transferred buffer cannot be transferred again.
 */
export function toTransferableBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength === 0) return new Uint8Array(0)
  const { buffer } = bytes
  const isAlone = buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

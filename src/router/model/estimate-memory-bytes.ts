/** Approximate bytes for an object, a list entry or a member, in addition to its value. */
const OVERHEAD_BYTES = 32

/** Approximate memory of a decoded message, in bytes. */
export function estimateMemoryBytes(value: unknown): number {
  if (typeof value === 'string') return OVERHEAD_BYTES + value.length
  if (value instanceof Uint8Array) return OVERHEAD_BYTES + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = OVERHEAD_BYTES
  for (const [name, member] of Object.entries(value)) {
    bytes += (Array.isArray(value) ? 0 : name.length) + estimateMemoryBytes(member)
  }
  return bytes
}

/** An object, an entry of a list or a member takes about this beside its contents. */
const OVERHEAD_BYTES = 32

/** Memory that a decoded message takes, about. */
export function estimatedBytes(value: unknown): number {
  if (typeof value === 'string') return OVERHEAD_BYTES + value.length
  if (value instanceof Uint8Array) return OVERHEAD_BYTES + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = OVERHEAD_BYTES
  for (const [name, member] of Object.entries(value)) {
    bytes += (Array.isArray(value) ? 0 : name.length) + estimatedBytes(member)
  }
  return bytes
}

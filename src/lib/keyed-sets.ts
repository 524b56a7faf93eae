/** Adds a value to the set of a key, creating the set if needed. */
export function addToSet<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const known = sets.get(key)
  if (known === undefined) sets.set(key, new Set([value]))
  else known.add(value)
}

/**
 * Removes a value from the set of a key, and the key together with its last value, so that keys
 * chosen by clients do not accumulate.
 * @returns false when the value was absent.
 */
export function removeFromSet<K, V>(sets: Map<K, Set<V>>, key: K, value: V): boolean {
  const known = sets.get(key)
  if (known?.delete(value) !== true) return false
  if (known.size === 0) sets.delete(key)
  return true
}

/** Adds a value to the set under a key, which is made with its first value. */
export function addToSet<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const known = sets.get(key)
  if (known === undefined) sets.set(key, new Set([value]))
  else known.add(value)
}

/**
 * Removes a value from the set under a key, and the key with its last value: keys that strangers
 * choose are forgotten.
 * @returns false when it was not there.
 */
export function removeFromSet<K, V>(sets: Map<K, Set<V>>, key: K, value: V): boolean {
  const known = sets.get(key)
  if (known?.delete(value) !== true) return false
  if (known.size === 0) sets.delete(key)
  return true
}

/**
 * Marks a fixed answer for a part of the product that does not exist yet, and returns it unchanged.
 * Search for this name to find all such answers when the part is built.
 */
export function notBuiltYet<const T>(value: T): T {
  return value
}

/**
 * Marks a fixed answer for a part of the product that does not exist yet, and returns it unchanged.
 * When the part is built, search for this name to find all such answers.
 */
export function notBuiltYet<const T>(value: T): T {
  return value
}

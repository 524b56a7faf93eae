/**
 * Marks a fixed response for a part of the product that does not exist yet, and returns it
 * unchanged. When the part is built, search for this function's name to find all such responses.
 */
export function notBuiltYet<const T>(value: T): T {
  return value
}

/**
 * A fixed answer that stands for a part of the product that is not there yet. It gives the value
 * back as it is: its name is there to be searched for, so that none of these answers is forgotten
 * when the part is built.
 */
export function notBuiltYet<const T>(value: T): T {
  return value
}

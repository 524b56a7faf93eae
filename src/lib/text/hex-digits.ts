/**
 * The hexadecimal digits of a text, in lower case: what hashes, fingerprints and hardware addresses
 * are compared by.
 */
export function hexDigits(text: string): string {
  return text.toLowerCase().replace(/[^0-9a-f]/g, '')
}

/**
 * The hexadecimal digits in a string, in lower case, for comparing hashes, fingerprints and
 * hardware addresses.
 */
export function extractHexDigits(text: string): string {
  return text.toLowerCase().replace(/[^0-9a-f]/g, '')
}

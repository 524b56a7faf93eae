/**
 * Decodes text from a file or pipe that a person or a program wrote. PowerShell writes UTF-16, and
 * UTF-8 with a byte order mark. The mark determines the encoding and is removed.
 */
export function decodeText(bytes: Uint8Array): string {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return new TextDecoder('utf-8').decode(bytes)
}

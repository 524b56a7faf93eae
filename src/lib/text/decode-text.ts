/**
 * Text of a file or pipe that a person or a program wrote. PowerShell writes UTF-16, and UTF-8 with
 * a byte order mark; the mark names the encoding and is no part of the text.
 */
export function decodeText(bytes: Uint8Array): string {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return new TextDecoder('utf-8').decode(bytes)
}

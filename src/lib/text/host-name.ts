import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

const NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/

/** This limit is far longer than any host name; longer strings are rejected without conversion. */
const TEXT_LENGTH_MAX = 1024

/**
 * The normalized name in ASCII (an internationalized name as punycode), or null if invalid. A name
 * whose last label is a number is rejected: resolvers treat such names as addresses in old
 * notations (`127.1`, `0x7f000001`), which would bypass the rules for addresses.
 */
export function parseDnsName(text: string): string | null {
  if (text.length > TEXT_LENGTH_MAX) return null
  // All checks of characters follow the conversion, because the conversion maps other characters,
  // such as full-width digits, to ASCII.
  const ascii = isAscii(text) ? text : domainToASCII(text)
  const name = ascii.toLowerCase().replace(/\.$/, '')
  if (!NAME.test(name) || isIP(name) !== 0) return null
  const last = name.slice(name.lastIndexOf('.') + 1)
  // @guard targets-of-a-tunnel--forms
  return /^(?:[0-9]+|0x[0-9a-f]*)$/.test(last) ? null : name
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length
}

import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

const NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/

/** Far longer than a name; a longer text is not converted. */
const TEXT_LENGTH_MAX = 1024

/**
 * Normalized name in ASCII (an internationalized one as punycode), or null. A numeric last label is
 * rejected: resolvers treat such names as addresses in old notations (`127.1`, `0x7f000001`), which
 * would bypass the address rules.
 */
export function parseDnsName(text: string): string | null {
  // The conversion maps forms such as full-width digits to ASCII, so all checks look at its result.
  if (text.length > TEXT_LENGTH_MAX) return null
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

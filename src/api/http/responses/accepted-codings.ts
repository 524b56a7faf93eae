const CODINGS_MAX = 16

/**
 * Codings listed in Accept-Encoding (RFC 9110 12.5.3). A coding that is refused (`q=0`), or listed
 * only by `*`, is left out. If no listed coding fits, the client gets the uncompressed response.
 */
export function acceptedCodings(header: string | undefined): ReadonlySet<string> {
  const accepted = new Set<string>()
  for (const item of (header ?? '').split(',', CODINGS_MAX)) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    if (!parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) accepted.add(name)
  }
  return accepted
}

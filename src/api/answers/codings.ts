const CODINGS_MAX = 16

/**
 * The codings that Accept-Encoding names (RFC 9110 12.5.3). One that is refused (`q=0`) or only
 * meant by `*` counts as not named: the file itself is always right.
 */
export function acceptedCodings(header: string | undefined): ReadonlySet<string> {
  const accepted = new Set<string>()
  for (const item of (header ?? '').split(',', CODINGS_MAX)) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    if (!parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) accepted.add(name)
  }
  return accepted
}

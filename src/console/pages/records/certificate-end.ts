const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const EXPLICIT_VERSION = 0xa0

interface DerValue {
  readonly tag: number
  readonly start: number
  readonly end: number
}

/** The DER value at a position; its end may lie beyond the data. */
function derValueAt(bytes: Uint8Array, at: number): DerValue {
  const tag = bytes[at] ?? 0
  const first = bytes[at + 1] ?? 0
  let [start, length] = [at + 2, first]
  if (first > 0x80) {
    length = 0
    start += first - 0x80
    for (const byte of bytes.subarray(at + 2, start)) length = length * 256 + byte
  }
  return { tag, start, end: start + length }
}

function pemBytes(pem: string): Uint8Array {
  const [, body = ''] = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(pem) ?? []
  return Uint8Array.from(atob(body.replace(/\s/g, '')), (character) => character.charCodeAt(0))
}

/** The fields of the first certificate in a PEM text, from the issuer on; null for no PEM text. */
function certificateFields(pem: unknown): { bytes: Uint8Array; issuer: DerValue } | null {
  if (typeof pem !== 'string') return null
  try {
    const bytes = pemBytes(pem)
    const signed = derValueAt(bytes, derValueAt(bytes, 0).start)
    let field = derValueAt(bytes, signed.start)
    // Before the issuer: version (only if it is not 1), serial number and algorithm.
    const before = field.tag === EXPLICIT_VERSION ? 3 : 2
    for (let passed = 0; passed < before; passed += 1) field = derValueAt(bytes, field.end)
    return { bytes, issuer: field }
  } catch {
    // The text is not valid base64: the page shows the record without these fields.
    return null
  }
}

/** When the first certificate in a PEM text expires, in RFC 3339; null if it cannot be read. */
export function certificateEnd(pem: unknown): string | null {
  const found = certificateFields(pem)
  if (found === null) return null
  const { bytes, issuer } = found
  const { tag, start, end } = derValueAt(
    bytes,
    derValueAt(bytes, derValueAt(bytes, issuer.end).start).end,
  )
  if (tag !== UTC_TIME && tag !== GENERALIZED_TIME) return null
  const digits = String.fromCharCode(...bytes.subarray(start, end))
  const century = tag === GENERALIZED_TIME ? '' : digits < '50' ? '20' : '19'
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + digits) ?? []
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}

/** Attributes of a subject that are shown, by the last byte of their OID below 2.5.4. */
const SUBJECT_ATTRIBUTES: Readonly<Record<number, string>> = { 3: 'CN', 6: 'C', 10: 'O', 11: 'OU' }

/** The subject of the first certificate in a PEM text, such as `CN=web, O=Acme`; '' if invalid. */
export function certificateSubject(pem: unknown): string {
  const found = certificateFields(pem)
  if (found === null) return ''
  const { bytes, issuer } = found
  const subject = derValueAt(bytes, derValueAt(bytes, issuer.end).end)
  const parts: string[] = []
  for (let at = subject.start; at < subject.end && at < bytes.length;) {
    const set = derValueAt(bytes, at)
    const oid = derValueAt(bytes, derValueAt(bytes, set.start).start)
    const value = derValueAt(bytes, oid.end)
    const known =
      bytes[oid.start] === 0x55 ? SUBJECT_ATTRIBUTES[bytes[oid.end - 1] ?? 0] : undefined
    if (known !== undefined) {
      parts.push(`${known}=${new TextDecoder().decode(bytes.subarray(value.start, value.end))}`)
    }
    at = Math.max(set.end, at + 1)
  }
  return parts.join(', ')
}

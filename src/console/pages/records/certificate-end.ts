const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const EXPLICIT_VERSION = 0xa0

interface DerValue {
  readonly tag: number
  readonly start: number
  readonly end: number
}

/** The DER value at a position; values longer than the data are cut. */
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

/** When the first certificate in a PEM text expires, in RFC 3339; null if it cannot be read. */
export function certificateEnd(pem: unknown): string | null {
  if (typeof pem !== 'string') return null
  try {
    const bytes = pemBytes(pem)
    const signed = derValueAt(bytes, derValueAt(bytes, 0).start)
    let field = derValueAt(bytes, signed.start)
    // Before the validity: version (only if it is not 1), serial number, algorithm and issuer.
    const before = field.tag === EXPLICIT_VERSION ? 4 : 3
    for (let passed = 0; passed < before; passed += 1) field = derValueAt(bytes, field.end)
    const { tag, start, end } = derValueAt(bytes, derValueAt(bytes, field.start).end)
    if (tag !== UTC_TIME && tag !== GENERALIZED_TIME) return null
    const digits = String.fromCharCode(...bytes.subarray(start, end))
    const century = tag === GENERALIZED_TIME ? '' : digits < '50' ? '20' : '19'
    const [, year, month, day, hour, minute, second] =
      /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + digits) ?? []
    const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    return Number.isNaN(date.getTime()) ? null : date.toISOString()
  } catch {
    // The text is no base64; the record is shown without the time.
    return null
  }
}

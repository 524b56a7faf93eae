/** Response codes (RFC 1035, 4.1.1). */
export const dnsResponseCode = { none: 0, serverFailure: 2, notImplemented: 4, refused: 5 } as const
type DnsCode = (typeof dnsResponseCode)[keyof typeof dnsResponseCode]

/** Record types of DNS. */
export const dnsRecordType = { a: 1, any: 255 } as const

/** A query with exactly one question, as all resolvers send it. */
export interface DnsQuery {
  readonly bytes: Buffer
  readonly id: number
  /**
   * The queried name in lower case; null if it is empty or contains characters that host names
   * cannot have.
   */
  readonly name: string | null
  readonly type: number
  readonly isInternet: boolean
  /** End offset of header and question. */
  readonly questionEnd: number
}

const HEADER_BYTES = 12
const NAME_BYTES_MAX = 255
const LABEL_BYTES_MAX = 63
const CLASS_INTERNET = 1
const flag = { response: 0x8000, opcode: 0x7800, recursionDesired: 0x0100 } as const
const RECURSION_AVAILABLE = 0x0080
const NAME_OF_QUESTION = 0xc000 | HEADER_BYTES

/**
 * Parses header and question, and ignores the rest of the query.
 * @returns null if the bytes are not a query with exactly one question.
 */
export function readDnsQuery(bytes: Buffer): DnsQuery | null {
  if (bytes.length < HEADER_BYTES) return null
  const flags = bytes.readUInt16BE(2)
  const counts = [4, 6, 8].map((at) => bytes.readUInt16BE(at))
  if ((flags & (flag.response | flag.opcode)) !== 0 || counts.join() !== '1,0,0') return null
  const labels: string[] = []
  let at = HEADER_BYTES
  for (;;) {
    const length = bytes[at]
    // A length with its two high bits set is a compression pointer, which is refused here: it can
    // only refer to an earlier name, and the question is the first one.
    if (length === undefined || length > LABEL_BYTES_MAX) return null
    at += 1
    if (length === 0) break
    labels.push(bytes.toString('latin1', at, at + length))
    at += length
    if (at - HEADER_BYTES >= NAME_BYTES_MAX) return null
  }
  if (at + 4 > bytes.length) return null
  const isHostName = labels.length > 0 && labels.every((label) => /^[a-z0-9_-]+$/i.test(label))
  return {
    bytes,
    id: bytes.readUInt16BE(0),
    name: isHostName ? labels.join('.').toLowerCase() : null,
    type: bytes.readUInt16BE(at),
    isInternet: bytes.readUInt16BE(at + 2) === CLASS_INTERNET,
    questionEnd: at + 4,
  }
}

/** @param addresses IPv4 addresses for records of type A. */
export function dnsResponse(
  { bytes, questionEnd }: DnsQuery,
  code: DnsCode,
  addresses: readonly string[] = [],
  ttlSeconds = 0,
): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  bytes.copy(header, 0, 0, 4)
  const desired = bytes.readUInt16BE(2) & flag.recursionDesired
  header.writeUInt16BE(flag.response | desired | RECURSION_AVAILABLE | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  const records = addresses.map((address) => {
    const record = Buffer.alloc(16)
    record.writeUInt16BE(NAME_OF_QUESTION, 0)
    record.writeUInt16BE(dnsRecordType.a, 2)
    record.writeUInt16BE(CLASS_INTERNET, 4)
    record.writeUInt32BE(ttlSeconds, 6)
    record.writeUInt16BE(4, 10)
    record.set(address.split('.').map(Number), 12)
    return record
  })
  return Buffer.concat([header, bytes.subarray(HEADER_BYTES, questionEnd), ...records])
}

/** The same message with another ID. */
export function withDnsId(bytes: Uint8Array, id: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt16BE(id, 0)
  return copy
}

/**
 * Whether the bytes are a response to the query that was sent with this ID; the response must
 * repeat the question.
 */
export function isMatchingDnsResponse(
  { bytes, questionEnd }: DnsQuery,
  id: number,
  answer: Buffer,
): boolean {
  // @guard names-at-a-host--id
  if (answer.length < questionEnd || answer.readUInt16BE(0) !== id) return false
  const isResponse = (answer.readUInt16BE(2) & flag.response) !== 0
  const question = bytes.subarray(HEADER_BYTES, questionEnd)
  // @guard names-at-a-host--question, names-at-a-host--response
  return (
    isResponse &&
    answer.readUInt16BE(4) === 1 &&
    question.equals(answer.subarray(HEADER_BYTES, questionEnd))
  )
}

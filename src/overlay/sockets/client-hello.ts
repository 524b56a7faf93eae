/**
 * Limits for the first TLS message of a client, the ClientHello. OpenSSL sends it in one record of
 * about 2 KiB.
 */
export const clientHelloLimits = {
  clientHelloBytesMax: 32 * 1024,
  /** Maximum records into which the first TLS message may be split. */
  clientHelloRecordsMax: 16,
} as const

export type TlsHelloResult =
  | {
      readonly kind: 'hello'
      /** Application protocols (ALPN) in the client's order; null if it offers none. */
      readonly protocols: readonly string[] | null
    }
  /**
   * `bytesNeeded`: how many bytes, from the start of the connection, the next call needs at least.
   */
  | { readonly kind: 'incomplete'; readonly bytesNeeded: number }
  | { readonly kind: 'invalid' }

const HANDSHAKE_RECORD = 22
const CLIENT_HELLO = 1
const ALPN = 16
const RECORD_HEAD_BYTES = 5
const MESSAGE_HEAD_BYTES = 4
const RANDOM_BYTES = 32

const invalid: TlsHelloResult = { kind: 'invalid' }

/**
 * Reads the application protocols that a TLS client offers (RFC 8446, 4.1.2), from the first bytes
 * of its connection. Checks nothing else, because the TLS server that receives the connection reads
 * these bytes again.
 */
export function readTlsHello(bytes: Uint8Array): TlsHelloResult {
  const { clientHelloBytesMax, clientHelloRecordsMax } = clientHelloLimits
  const parts: Uint8Array[] = []
  let messageBytes = 0
  let at = 0
  for (let records = 0; records < clientHelloRecordsMax; records += 1) {
    const head = bytes.subarray(at, at + RECORD_HEAD_BYTES)
    if (head.length > 0 && head[0] !== HANDSHAKE_RECORD) return invalid
    if (head.length > 1 && head[1] !== 3) return invalid
    const length = ((head[3] ?? 0) << 8) | (head[4] ?? 0)
    const bytesNeeded = at + RECORD_HEAD_BYTES + (head.length < RECORD_HEAD_BYTES ? 0 : length)
    if (bytesNeeded > clientHelloBytesMax) return invalid
    if (head.length < RECORD_HEAD_BYTES || bytes.length < bytesNeeded) {
      return { kind: 'incomplete', bytesNeeded }
    }
    if (length === 0) return invalid
    parts.push(bytes.subarray(at + RECORD_HEAD_BYTES, bytesNeeded))
    messageBytes += length
    at = bytesNeeded
    const message = messageIn(parts, messageBytes)
    if (message !== null) return message
  }
  return invalid
}

/** The complete message; null while more records are needed. */
function messageIn(parts: readonly Uint8Array[], messageBytes: number): TlsHelloResult | null {
  if (messageBytes < MESSAGE_HEAD_BYTES) return null
  const bytes = Buffer.concat(parts)
  if (bytes[0] !== CLIENT_HELLO) return invalid
  const end = MESSAGE_HEAD_BYTES + bytes.readUIntBE(1, 3)
  if (end > clientHelloLimits.clientHelloBytesMax) return invalid
  if (bytes.length < end) return null
  const protocols = protocolsIn(new Fields(bytes.subarray(MESSAGE_HEAD_BYTES, end)))
  return protocols === undefined ? invalid : { kind: 'hello', protocols }
}

/** @returns undefined if the message is malformed. */
function protocolsIn(hello: Fields): readonly string[] | null | undefined {
  hello.skip(2 + RANDOM_BYTES)
  hello.vector(1)
  hello.vector(2)
  hello.vector(1)
  if (hello.isEmpty) return hello.isMalformed ? undefined : null
  const extensions = hello.vector(2)
  let protocols: string[] | null = null
  while (!extensions.isEmpty && !extensions.isMalformed) {
    const type = extensions.number(2)
    const content = extensions.vector(2)
    if (type !== ALPN || protocols !== null) continue
    protocols = []
    const names = content.vector(2)
    while (!names.isEmpty && !names.isMalformed) protocols.push(names.vector(1).text)
    if (content.isMalformed || names.isMalformed) return undefined
  }
  return hello.isMalformed || extensions.isMalformed ? undefined : protocols
}

/** Reads numbers and byte sequences in order. Beyond the end, the results are 0 or empty. */
class Fields {
  readonly #bytes: Buffer
  #at = 0
  isMalformed = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isEmpty(): boolean {
    return this.#at >= this.#bytes.length
  }

  get text(): string {
    return this.#bytes.toString('latin1')
  }

  skip(bytes: number): void {
    this.#take(bytes)
  }

  number(bytes: 1 | 2): number {
    const taken = this.#take(bytes)
    return taken.length === 0 ? 0 : taken.readUIntBE(0, bytes)
  }

  /** A sequence that begins with its length. */
  vector(lengthBytes: 1 | 2): Fields {
    return new Fields(this.#take(this.number(lengthBytes)))
  }

  #take(bytes: number): Buffer {
    if (this.#at + bytes > this.#bytes.length) {
      this.isMalformed = true
      this.#at = this.#bytes.length
      return Buffer.alloc(0)
    }
    const taken = this.#bytes.subarray(this.#at, this.#at + bytes)
    this.#at += bytes
    return taken
  }
}

import { createHmac } from 'node:crypto'

/** The secret in a provisioning URL, as an authenticator app reads it. */
export function secretOf(provisioningUrl: string): Uint8Array {
  const text = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  let bits = ''
  for (const character of text) {
    const value = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(character)
    if (value === -1) throw new Error('the secret is no base32')
    bits += value.toString(2).padStart(5, '0')
  }
  const bytes = bits.match(/.{8}/g) ?? []
  return Uint8Array.from(bytes.map((byte) => parseInt(byte, 2)))
}

/**
 * The code that an authenticator app would show. It is written from RFC 4226 and 6238 and does not
 * use the controllers' code. @param atMs Unix time.
 */
export function codeOf(provisioningUrl: string, atMs: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigInt64BE(BigInt(Math.floor(atMs / 30_000)))
  const mac = createHmac('sha1', secretOf(provisioningUrl)).update(counter).digest()
  const offset = (mac[19] ?? 0) & 15
  const [a = 0, b = 0, c = 0, d = 0] = mac.subarray(offset, offset + 4)
  const number = (((a & 127) * 256 + b) * 256 + c) * 256 + d
  return String(number).slice(-6).padStart(6, '0')
}

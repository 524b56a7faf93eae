/** Most characters of the PEM text of a certificate request, whoever makes it. */
export const CERTIFICATE_REQUEST_CHARACTERS_MAX = 16 * 1024

/** One block of a PEM text (RFC 7468). */
export interface PemBlock {
  /** `CERTIFICATE`. */
  readonly label: string
  readonly der: Uint8Array
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g

/**
 * The blocks of a PEM text in their order, at most so many; what is between them is passed over.
 */
export function pemBlocks(text: string, blocksMax: number): PemBlock[] {
  const blocks: PemBlock[] = []
  for (const [, label = '', base64 = ''] of text.matchAll(BLOCK)) {
    if (blocks.length === blocksMax) break
    blocks.push({ label, der: Uint8Array.from(Buffer.from(base64, 'base64')) })
  }
  return blocks
}

/** One block, with a line end after it. */
export function pemText(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.length).toString('base64')
  let lines = ''
  for (let at = 0; at < base64.length; at += 64) lines += `${base64.slice(at, at + 64)}\n`
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`
}

/** Maximum characters of a PEM certificate request. */
export const CERTIFICATE_REQUEST_CHARACTERS_MAX = 16 * 1024

/** One block of a PEM string (RFC 7468). */
interface PemBlock {
  /** For example `CERTIFICATE`. */
  readonly label: string
  readonly der: Uint8Array
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g

/** The blocks of a PEM string in order, at most `blocksMax`; text between blocks is skipped. */
export function pemBlocks(text: string, blocksMax: number): PemBlock[] {
  const blocks: PemBlock[] = []
  for (const [, label = '', base64 = ''] of text.matchAll(BLOCK)) {
    if (blocks.length === blocksMax) break
    blocks.push({ label, der: Uint8Array.from(Buffer.from(base64, 'base64')) })
  }
  return blocks
}

/** Formats one block, ending with a line break. */
export function pemText(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.length).toString('base64')
  let lines = ''
  for (let at = 0; at < base64.length; at += 64) lines += `${base64.slice(at, at + 64)}\n`
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`
}

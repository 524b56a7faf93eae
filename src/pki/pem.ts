/** One block of a PEM text (RFC 7468). */
export interface PemBlock {
  /** `CERTIFICATE`. */
  readonly label: string
  readonly der: Uint8Array
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g

/** The blocks of a PEM text in their order, at most so many; what is between them is passed over. */
export function pemBlocks(text: string, blocksMax: number): PemBlock[] {
  const blocks: PemBlock[] = []
  for (const [, label = '', base64 = ''] of text.matchAll(BLOCK)) {
    if (blocks.length === blocksMax) break
    blocks.push({ label, der: Uint8Array.from(Buffer.from(base64, 'base64')) })
  }
  return blocks
}

import { encodedPemBlocks, formatPemBlock } from '../lib/text/pem-text.ts'

/** Maximum characters of a PEM certificate request. */
export const CERTIFICATE_REQUEST_CHARACTERS_MAX = 16 * 1024

/** One block of a PEM string (RFC 7468). */
interface PemBlock {
  /** Label of the block, for example `CERTIFICATE`. */
  readonly label: string
  readonly der: Uint8Array
}

/** The first `blocksMax` blocks of a PEM string in order; text between blocks is skipped. */
export function readPemBlocks(text: string, blocksMax: number): PemBlock[] {
  const blocks: PemBlock[] = []
  for (const { label, base64 } of encodedPemBlocks(text)) {
    if (blocks.length === blocksMax) break
    blocks.push({ label, der: Uint8Array.from(Buffer.from(base64, 'base64')) })
  }
  return blocks
}

/** Formats one block, ending with a line break. */
export function encodePemBlock(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.length).toString('base64')
  return formatPemBlock({ label, base64 })
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([A-Za-z0-9+/=\s]*)-----END \1-----/g
const LINE_CHARACTERS = 64

/** A block of a PEM text (RFC 7468) whose content is not decoded yet. */
export interface EncodedPemBlock {
  /** Label of the block, for example `CERTIFICATE`. */
  readonly label: string
  readonly base64: string
}

/** The blocks of a PEM text in order; text between blocks is skipped. */
export function* encodedPemBlocks(text: string): Generator<EncodedPemBlock> {
  for (const [, label = '', base64 = ''] of text.matchAll(BLOCK)) yield { label, base64 }
}

/** Formats one block, ending with a line break. */
export function formatPemBlock({ label, base64 }: EncodedPemBlock): string {
  let lines = ''
  for (let at = 0; at < base64.length; at += LINE_CHARACTERS) {
    lines += `${base64.slice(at, at + LINE_CHARACTERS)}\n`
  }
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`
}

/** The first block, without the text around it and in standard lines; null if there is none. */
export function firstPemBlock(text: string): string | null {
  for (const { label, base64 } of encodedPemBlocks(text)) {
    return formatPemBlock({ label, base64: base64.replace(/\s/g, '') })
  }
  return null
}

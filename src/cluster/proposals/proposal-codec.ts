import { assert } from '../../lib/assert.ts'
import { getUint53, setUint53 } from '../../raft/entry-codec.ts'

/** A Command, encoded, and the sequence that its origin gave it. */
export interface PackedProposal {
  readonly sequence: number
  readonly command: Uint8Array
}

/** Little endian: u32 length of the command, u64 sequence. */
const HEADER_BYTES = 12

export function packProposals(proposals: readonly PackedProposal[]): Uint8Array<ArrayBuffer> {
  let length = 0
  for (const { command } of proposals) length += HEADER_BYTES + command.length
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const { sequence, command } of proposals) {
    view.setUint32(at, command.length, true)
    setUint53(view, at + 4, sequence)
    bytes.set(command, at + HEADER_BYTES)
    at += HEADER_BYTES + command.length
  }
  return bytes
}

/** Commands are views into `bytes`. */
export function unpackProposals(bytes: Uint8Array): PackedProposal[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const proposals: PackedProposal[] = []
  let at = 0
  while (at < bytes.length) {
    assert(at + HEADER_BYTES <= bytes.length, 'a packed proposal has its header')
    const end = at + HEADER_BYTES + view.getUint32(at, true)
    const sequence = getUint53(view, at + 4)
    assert(sequence !== null && end <= bytes.length, 'a packed proposal is whole')
    proposals.push({ sequence, command: bytes.subarray(at + HEADER_BYTES, end) })
    at = end
  }
  return proposals
}

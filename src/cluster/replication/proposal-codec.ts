import { assert } from '../../lib/assert.ts'
import { NO_TRACE } from '../../lib/trace-context.ts'
import { readSafeInteger, writeSafeInteger } from '../../raft/entry-codec.ts'

/** An encoded Command and its sequence number, which the proposing controller assigned. */
export interface PackedProposal {
  readonly sequence: number
  readonly command: Uint8Array
  /** Encoded trace (lib/trace-context.ts); empty or absent: none. */
  readonly trace?: Uint8Array
}

/**
 * Little endian: u32 bytes of the command, u64 sequence, u8 bytes of the trace; then command and
 * trace.
 */
const HEADER_BYTES = 13

export function packProposals(proposals: readonly PackedProposal[]): Uint8Array<ArrayBuffer> {
  let length = 0
  for (const { command, trace = NO_TRACE } of proposals) {
    length += HEADER_BYTES + command.length + trace.length
  }
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const { sequence, command, trace = NO_TRACE } of proposals) {
    view.setUint32(at, command.length, true)
    writeSafeInteger(view, at + 4, sequence)
    view.setUint8(at + 12, trace.length)
    bytes.set(command, at + HEADER_BYTES)
    bytes.set(trace, at + HEADER_BYTES + command.length)
    at += HEADER_BYTES + command.length + trace.length
  }
  return bytes
}

/** Commands and traces are views into `bytes`. */
export function unpackProposals(bytes: Uint8Array): PackedProposal[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const proposals: PackedProposal[] = []
  let at = 0
  while (at < bytes.length) {
    assert(at + HEADER_BYTES <= bytes.length, 'a packed proposal has its header')
    const commandEnd = at + HEADER_BYTES + view.getUint32(at, true)
    const end = commandEnd + view.getUint8(at + 12)
    const sequence = readSafeInteger(view, at + 4)
    assert(sequence !== null && end <= bytes.length, 'a packed proposal is whole')
    const command = bytes.subarray(at + HEADER_BYTES, commandEnd)
    const trace = bytes.subarray(commandEnd, end)
    proposals.push({ sequence, command, ...(trace.length === 0 ? {} : { trace }) })
    at = end
  }
  return proposals
}

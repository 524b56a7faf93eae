import { createHash } from 'node:crypto'

import type { Machine } from '../../ports/machine.ts'
import type { PeerChannel } from '../../ports/peer-channel.ts'
import type { StoreReceiver } from '../../ports/state-store.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import { countIn, decodeMessage, encodeMessage, textIn } from '../membership/messages.ts'
import {
  DIGEST_METHOD,
  PIECE_HEAD_BYTES,
  PIECE_METHOD,
  SHA256_BYTES,
  SNAPSHOT_METHOD,
} from './state-desk.ts'

const DIGEST_MS_MAX = 2000
const OPEN_MS_MAX = 10_000
const PIECE_MS_MAX = 10_000

/** What the members asked hold at `index`; those that do not answer, or have no digest there, are left out. */
export async function askDigests(
  peers: PeerChannel,
  ids: readonly NodeId[],
  index: Index,
): Promise<ReadonlyMap<NodeId, string>> {
  const request = encodeMessage({ index })
  const heard = new Map<NodeId, string>()
  const ask = async (id: NodeId): Promise<void> => {
    const answer = await peers.call(id, DIGEST_METHOD, request, DIGEST_MS_MAX)
    const digest = textIn(decodeMessage(answer), 'digest')
    if (digest !== '') heard.set(id, digest)
  }
  await Promise.allSettled(ids.map(ask))
  return heard
}

/**
 * The state of member `from` at `least` or later, whole and checked, beside the live one.
 * @param isUnwanted looked at between two pieces.
 * @throws when it is not to be had, or not wanted any more; nothing is left of it then.
 */
export async function fetchState(
  { peers, machine }: { readonly peers: PeerChannel; readonly machine: Machine },
  from: NodeId,
  least: Index,
  isUnwanted: () => boolean,
): Promise<StoreReceiver> {
  const request = encodeMessage({ index: least })
  const opened = decodeMessage(await peers.call(from, SNAPSHOT_METHOD, request, OPEN_MS_MAX))
  const id = countIn(opened, 'id')
  const index = countIn(opened, 'index')
  if (index < least)
    throw new Error(`${from} offers state at index ${index}, older than the required ${least}`)
  if (isUnwanted()) throw new Error('it is not wanted any more')
  const receiver = await machine.receive()
  try {
    await receive(receiver, async (number) => {
      if (isUnwanted()) throw new Error('it is not wanted any more')
      return await peers.call(from, PIECE_METHOD, encodeMessage({ id, number }), PIECE_MS_MAX)
    })
    const { position } = await receiver.finish()
    if (position.index !== index) throw new Error('received data does not match its announcement')
    return receiver
  } catch (error) {
    await receiver.abandon()
    throw error
  }
}

async function receive(
  receiver: StoreReceiver,
  read: (number: number) => Promise<Uint8Array>,
): Promise<void> {
  const hash = createHash('sha256')
  for (let number = 0; ; number += 1) {
    const piece = await read(number)
    const isLast = piece[0] === 1
    const head = PIECE_HEAD_BYTES + (isLast ? SHA256_BYTES : 0)
    if (piece.length < head) throw new Error(`piece ${number} is truncated`)
    const data = piece.subarray(head)
    hash.update(data)
    if (isLast && Buffer.compare(hash.digest(), piece.subarray(PIECE_HEAD_BYTES, head)) !== 0) {
      throw new Error('checksum mismatch')
    }
    await receiver.write(data)
    if (isLast) return
  }
}

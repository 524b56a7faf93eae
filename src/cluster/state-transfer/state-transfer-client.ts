import type { SnapshotChunk } from '../../../proto/gen/mesh_pb.ts'
import type { ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import { PEER_PAYLOAD_BYTES_MAX, type PeerChannel } from '../peer-channel.ts'
import type { StoreReceiver } from '../../ports/state-store.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import { callPeer } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import { StateChunkVerifier } from './state-chunks.ts'

const DIGEST_MS_MAX = 2000
const OPEN_MS_MAX = 10_000
const PIECE_MS_MAX = 10_000

/**
 * Requests the digests of these members at `index`. The result lacks members that do not respond,
 * or have no digest at this index.
 */
export async function fetchDigests(
  peers: PeerChannel,
  ids: readonly NodeId[],
  index: Index,
): Promise<ReadonlyMap<NodeId, string>> {
  const request = { index: BigInt(index) }
  const heard = new Map<NodeId, string>()
  const ask = async (id: NodeId): Promise<void> => {
    const { digest } = await callPeer(peers, id, peerMethods.digest, request, DIGEST_MS_MAX)
    if (digest !== '') heard.set(id, digest)
  }
  await Promise.allSettled(ids.map(ask))
  return heard
}

/**
 * Fetches the state of member `from` at index `least` or later, completely and verified, into files
 * that are separate from the live state.
 * @param isUnwanted checked before each piece; true aborts the transfer.
 * @throws when the state is not available or `isUnwanted` returned true; no files remain then.
 */
export async function fetchState(
  { peers, machine }: { readonly peers: PeerChannel; readonly machine: ReplicatedStateMachine },
  from: NodeId,
  least: Index,
  isUnwanted: () => boolean,
): Promise<StoreReceiver> {
  const request = { index: BigInt(least) }
  const offer = await callPeer(peers, from, peerMethods.snapshot, request, OPEN_MS_MAX)
  const index = Number(offer.index)
  if (index < least)
    throw new Error(`${from} offers state at index ${index}, older than the required ${least}`)
  if (isUnwanted()) throw new Error('it is no longer needed')
  const receiver = await machine.receive()
  try {
    await receive(receiver, async (number) => {
      if (isUnwanted()) throw new Error('it is no longer needed')
      const wanted = { id: offer.id, number: BigInt(number) }
      return await callPeer(peers, from, peerMethods.piece, wanted, PIECE_MS_MAX)
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
  read: (number: number) => Promise<SnapshotChunk>,
): Promise<void> {
  const check = new StateChunkVerifier(PEER_PAYLOAD_BYTES_MAX)
  while (!check.isWhole) {
    const chunk = await read(check.received)
    const fault = check.take(chunk)
    if (fault !== null) throw new Error(fault)
    await receiver.write(chunk.data)
  }
}

import { Metadata } from '@grpc/grpc-js'

import type { Index } from '../../raft/types.ts'
import { isPeerRefusalReason, type PeerRefusalReason } from './handshake.ts'

/**
 * Reason for refusing a peer and the refusing member's state, in the trailing metadata of the
 * stream.
 */
export interface MeshRefusal {
  readonly reason: PeerRefusalReason
  /** Index of the newest configuration that the refusing member knows to be committed. */
  readonly configurationIndex: Index
  /** Generation of the refusing member; 0 from a release that does not send it. */
  readonly generation: number
}

const REASON = 'flotilla-refusal'
const INDEX = 'flotilla-configuration-index'
const GENERATION = 'flotilla-generation'

export function refusalMetadata({ reason, configurationIndex, generation }: MeshRefusal): Metadata {
  const metadata = new Metadata()
  metadata.set(REASON, reason)
  metadata.set(INDEX, String(configurationIndex))
  metadata.set(GENERATION, String(generation))
  return metadata
}

/**
 * Decodes a refusal.
 * @returns null when the metadata has none, or one that this release does not know.
 */
export function readMeshRefusal(metadata: Metadata | undefined): MeshRefusal | null {
  const [reason] = metadata?.get(REASON) ?? []
  const [index] = metadata?.get(INDEX) ?? []
  const [sent] = metadata?.get(GENERATION) ?? []
  const configurationIndex = Number(index)
  const generation = Number(sent ?? 0)
  if (typeof reason !== 'string' || !isPeerRefusalReason(reason)) return null
  if (!Number.isSafeInteger(configurationIndex) || configurationIndex < 0) return null
  if (!Number.isSafeInteger(generation) || generation < 0) return null
  return { reason, configurationIndex, generation }
}

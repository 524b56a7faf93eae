import { Metadata } from '@grpc/grpc-js'

import type { Index } from '../../raft/types.ts'
import { isRefusalReason, type RefusalReason } from './handshake.ts'

/**
 * Why a peer was refused, and how new the refuser's knowledge is; in the trailing metadata of the
 * stream.
 */
export interface MeshRefusal {
  readonly reason: RefusalReason
  /** Index as of which the refuser knows a committed configuration. */
  readonly configurationIndex: Index
  /** Generation of the refuser; 0 from a version that does not tell. */
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

/** @returns null when it bears none that this release knows. */
export function meshRefusalIn(metadata: Metadata | undefined): MeshRefusal | null {
  const [reason] = metadata?.get(REASON) ?? []
  const [index] = metadata?.get(INDEX) ?? []
  const [told] = metadata?.get(GENERATION) ?? []
  const configurationIndex = Number(index)
  const generation = Number(told ?? 0)
  if (typeof reason !== 'string' || !isRefusalReason(reason)) return null
  if (!Number.isSafeInteger(configurationIndex) || configurationIndex < 0) return null
  if (!Number.isSafeInteger(generation) || generation < 0) return null
  return { reason, configurationIndex, generation }
}

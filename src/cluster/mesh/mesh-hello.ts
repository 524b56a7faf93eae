import { create } from '@bufbuild/protobuf'

import {
  type AddressClaim,
  type Hello,
  HelloSchema,
  type Position as WirePosition,
  PositionSchema,
} from '../../../proto/gen/mesh_pb.ts'
import { FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { FullCoreStatus } from '../../raft/core.ts'
import type { Index, Position } from '../../raft/types.ts'
import type { ConsensusOptions } from '../consensus-options.ts'

/**
 * Creates the Hello of this member with its current positions. It is the first frame on every
 * stream.
 */
export function createMeshHello(
  options: ConsensusOptions,
  now: {
    readonly boot: number
    readonly onDisk: FullCoreStatus['onDisk']
    readonly owed: Position | null
    readonly applied: Index
    readonly configurationIndex: Index
    readonly claim: AddressClaim
  },
): Hello {
  const { last, term } = now.onDisk
  // After a snapshot and before the log is reset, the state is ahead of the log, so the higher
  // index counts.
  const lastIndex = Math.max(last.index, now.applied)
  const lastTerm = lastIndex === last.index ? last.term : 0
  return create(HelloSchema, {
    clusterId: options.clusterId,
    generation: options.generation,
    nodeId: options.selfId,
    storeId: options.storeId,
    boot: BigInt(now.boot),
    version: options.version,
    featureLevel: FEATURE_LEVEL,
    startedAtMs: BigInt(options.startedAtMs),
    apiAddresses: options.apiAddresses.map(({ api, url, version }) => ({ api, url, version })),
    certificatePem: '',
    advertise: options.advertise,
    last: { term: BigInt(lastTerm), index: BigInt(lastIndex) },
    currentTerm: BigInt(term),
    configurationIndex: BigInt(now.configurationIndex),
    claim: now.claim,
    ...(now.owed === null ? {} : { owed: wireOf(now.owed) }),
    sharedOptionsSha256: options.sharedOptionsSha256 ?? new Uint8Array(0),
  })
}

function wireOf({ term, index }: Position): WirePosition {
  return create(PositionSchema, { term: BigInt(term), index: BigInt(index) })
}

import { fromBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { seededRandom } from '../../lib/random.ts'
import { Core } from '../../raft/core.ts'
import { defaultCoreOptions } from '../../raft/options.ts'
import type { RestoredLog } from '../../raft/types.ts'
import type { ConsensusOptions, ConsensusDeps } from '../consensus-options.ts'
import { AddressBook } from '../mesh/addresses.ts'

/** Restores the core from log and state. */
export function restoreCore(options: ConsensusOptions, deps: ConsensusDeps): Core {
  const { selfId, storeId, applied, appliedTimeMs, appliedSetbackMs = 0, core } = options
  const { restored, clock } = deps
  return Core.restore({
    id: selfId,
    storeId,
    options: { ...defaultCoreOptions, ...core },
    // Nodes must not draw equal election timeouts, and a node not the same ones after each start.
    random: seededRandom(seedOf(storeId, restored.boot, clock.nowMs())),
    log: restored,
    applied,
    appliedTimeMs,
    appliedSetbackMs,
    configuration: fromBinary(ConfigurationSchema, configurationAtStart(options, restored)),
  })
}

/** Addresses of peers that are known before the first contact. */
export function openAddressBook(options: ConsensusOptions, clock: Clock): AddressBook {
  const { selfId, clusterId, advertise, identity, addressHints } = options
  const hints = new Map(addressHints)
  return new AddressBook({ selfId, clusterId, advertise, identity, nowMs: clock.nowMs(), hints })
}

/** @throws when neither the state nor the log has a configuration. */
function configurationAtStart(options: ConsensusOptions, restored: RestoredLog): Uint8Array {
  if (options.configuration.length > 0) return options.configuration
  const first = restored.entries.find(({ type }) => type === 'configuration')
  // A copy, because the entry is a view of the whole log, which each status would transfer.
  if (first !== undefined) return Uint8Array.from(first.data)
  if (options.roster !== undefined && options.roster !== null) return options.roster.configuration
  throw new Error(
    'neither state nor log holds a configuration; this controller was never initialized',
  )
}

/** The seed depends on the disk, the start count and the salt. */
export function seedOf(storeId: Uint8Array, boot: number, salt: number): number {
  let seed = (boot ^ salt) >>> 0
  for (const byte of storeId) seed = (Math.imul(seed, 31) + byte) >>> 0
  return seed
}

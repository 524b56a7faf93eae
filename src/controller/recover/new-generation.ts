import { clone, create, toBinary } from '@bufbuild/protobuf'

import {
  type Configuration,
  ConfigurationSchema,
  DepartureSchema,
} from '../../../proto/gen/membership_pb.ts'
import { addRemovedKey } from '../../cluster/membership/member-keys.ts'
import { requirePresent } from '../../lib/assert.ts'
import { readDataIdentity, writeDataIdentity } from '../../store/log/data-identity.ts'
import { openLog } from '../../store/log/open-log.ts'
import { writeMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import type { SurvivorReadResult } from './survivor.ts'

/**
 * Makes the member of a data folder the only member of a new generation. Appends a configuration
 * entry in a new term, which also commits all entries before it. The caller must hold the folder's
 * lock. The generation is written first: after a crash before the entry is written, the folder has
 * no majority, and the caller can repeat the call.
 * @throws {StoreError}
 */
export function startNewGeneration(
  dataFolder: string,
  read: SurvivorReadResult,
  options: { readonly generation: number; readonly nowMs: number },
): void {
  const identity = readDataIdentity(dataFolder)
  const alone = onlyMember(read.configuration, identity.nodeId)
  writeDataIdentity(dataFolder, { ...identity, generation: options.generation })
  const { statePosition, stateCameBySnapshot } = read
  // `hasOtherVoters` makes `openLog` cut off a damaged end of the log, as the operator has
  // confirmed, although no other voter remains that could send the lost entries.
  const { restored, disk } = openLog(dataFolder, {
    statePosition,
    stateCameBySnapshot,
    hasOtherVoters: true,
  })
  const last = restored.entries.at(-1) ?? restored.base
  const term = Math.max(restored.hardState.term, last.term) + 1
  const timeMs = Math.max(options.nowMs, read.survivor.lastMs)
  const data = toBinary(ConfigurationSchema, alone)
  const index = last.index + 1
  const entry = { index, term, timeMs, type: 'configuration', data } as const
  const hardState = { term, votedFor: null }
  disk.write({ token: 0, hardState, entries: [entry], commit: restored.commit })
  disk.flush()
  // The missing tail is cleared, because no other voter remains that could send the missing
  // entries.
  if (disk.failure === null) disk.settle(null)
  disk.closeNow()
  if (disk.failure !== null) throw disk.failure
  writeMembershipCacheFile(dataFolder, { configuration: data, index, claims: [], marks: [] })
}

/**
 * Records the other members as removed, like a normal removal, so that all secrets that they could
 * read are rotated.
 */
function onlyMember(before: Configuration, id: string): Configuration {
  const own = requirePresent(
    before.members.find((member) => member.id === id),
    'the plan has found the controller among the members',
  )
  const target = clone(ConfigurationSchema, before)
  const gone = target.members.filter((member) => member.id !== id)
  target.members = [{ ...own, voter: true, promote: false, returning: false, leaving: false }]
  target.outgoingVoters = []
  target.departed.push(
    ...gone.map(({ id, publicKeySha256 }) =>
      create(DepartureSchema, { id, publicKeySha256, compromised: false }),
    ),
  )
  for (const member of gone) addRemovedKey(target, member)
  return target
}

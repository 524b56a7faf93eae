import { fromBinary } from '@bufbuild/protobuf'

import { type Configuration, ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { Index, Position } from '../../raft/types.ts'
import { readFence } from '../../store/folder/fence-file.ts'
import { type InspectedLog, inspectLog } from '../../store/log/inspect-log.ts'
import { LevelStateStore } from '../../store/state/level-state-store.ts'
import { readMembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import { membershipFromRecord } from '../start/known-voters.ts'

/**
 * A surviving member: facts about the cluster from one data folder. The facts contain no secrets,
 * so operators can copy them as a file.
 */
export interface SurvivingMemberFacts {
  readonly id: string
  readonly clusterId: string
  readonly generation: number
  readonly term: number
  /** Position of the last entry in the log. */
  readonly last: Position
  /** Timestamp of the last entry, UTC ms. */
  readonly lastMs: number
  /** Highest index that this member had recorded as committed. */
  readonly commit: Index
  /** Members in the newest configuration in this member's log, state or membership cache. */
  readonly members: readonly SurvivorMember[]
  readonly configurationIndex: Index
  /** Damage of the log, or that its tail may be missing; null if there is neither. */
  readonly finding: string | null
  /**
   * Generation in which the cluster continued without this folder; null if the folder has no FENCE
   * file.
   */
  readonly fencedBy: number | null
}

export interface SurvivorMember {
  readonly id: string
  readonly isVoter: boolean
  readonly address: string
}

export interface SurvivorReadResult {
  readonly survivor: SurvivingMemberFacts
  /** Newest configuration in log or state; a new generation starts from it. */
  readonly configuration: Configuration
  readonly statePosition: Position | null
  readonly stateCameBySnapshot: boolean
}

/**
 * Reads the data folder of a stopped controller. The caller must hold the folder's lock.
 * @throws {StoreError} when the folder cannot be read, or its state is damaged.
 */
export async function readSurvivor(dataFolder: string): Promise<SurvivorReadResult> {
  const log = inspectLog(dataFolder)
  const state = await readState(dataFolder)
  const own = newestConfiguration(log, state)
  const known = membershipFromRecord(readMembershipCacheFile(dataFolder))
  const isHeardNewer = known !== null && known.index > own.index
  const newest = isHeardNewer ? known : own
  const end = endOf(log, state)
  const { nodeId: id, clusterId, generation } = log.identity
  return {
    survivor: {
      id,
      clusterId,
      generation,
      ...end,
      commit: Math.max(log.commit, state.position.index),
      term: log.hardState.term,
      members: newest.configuration.members.map(({ id, voter, address }) => {
        const { outgoingVoters } = newest.configuration
        return { id, isVoter: voter || outgoingVoters.includes(id), address }
      }),
      configurationIndex: newest.index,
      finding: log.finding ?? (log.hasMissingTail ? 'its log may lack acknowledged entries' : null),
      fencedBy: readFence(dataFolder)?.generation ?? null,
    },
    configuration: own.configuration,
    statePosition: state.position.index === 0 ? null : state.position,
    stateCameBySnapshot: state.cameBySnapshot,
  }
}

interface StateFacts {
  readonly position: Position
  readonly timeMs: number
  readonly configuration: Configuration | null
  readonly cameBySnapshot: boolean
}

async function readState(dataFolder: string): Promise<StateFacts> {
  const store = await LevelStateStore.open(dataFolder, { freeBytesMin: 0 })
  try {
    const mark = store.mark()
    const cameBySnapshot = store.cameBySnapshot()
    if (mark === null) {
      return { position: { term: 0, index: 0 }, timeMs: 0, configuration: null, cameBySnapshot }
    }
    const bytes = Uint8Array.from(Buffer.from(mark.configuration, 'base64'))
    const configuration = fromBinary(ConfigurationSchema, bytes)
    return { position: mark.position, timeMs: mark.timeMs, configuration, cameBySnapshot }
  } finally {
    await store.close()
  }
}

function endOf(
  log: InspectedLog,
  state: StateFacts,
): Pick<SurvivingMemberFacts, 'last' | 'lastMs'> {
  // After a crash between storing a snapshot and resetting the log, the state is ahead of the log.
  if (state.position.index > log.last.index) return { last: state.position, lastMs: state.timeMs }
  return { last: log.last, lastMs: log.entries.at(-1)?.timeMs ?? state.timeMs }
}

function newestConfiguration(
  { entries }: InspectedLog,
  state: StateFacts,
): { readonly configuration: Configuration; readonly index: Index } {
  const entry = entries.findLast(({ type }) => type === 'configuration')
  const configuration = state.configuration ?? fromBinary(ConfigurationSchema, new Uint8Array(0))
  const ofState = { configuration, index: state.position.index }
  if (entry === undefined || entry.index < state.position.index) return ofState
  return { configuration: fromBinary(ConfigurationSchema, entry.data), index: entry.index }
}

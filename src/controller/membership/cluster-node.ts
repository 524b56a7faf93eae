import { join } from 'node:path'

import { toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import {
  type ClusterNodeOptions,
  type ClusterNodeDeps,
  defaultClusterNodeOptions,
} from '../../cluster/cluster-node-deps.ts'
import { ClusterNode } from '../../cluster/cluster-node.ts'
import type { ConsensusOptions } from '../../cluster/consensus-options.ts'
import type { ClusterRefusal } from '../../cluster/thread-channel.ts'
import { clusterScopeOptionsSha256 } from '../../config/controller/cluster-scope-options.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { systemClock } from '../../lib/clock.ts'
import type { MembershipRecord } from '../../ports/membership-cache.ts'
import type { DataIdentity } from '../../store/log/data-identity.ts'
import { KnownMembersFile } from '../../store/folder/known-members-file.ts'
import { QuarantineFile } from '../../store/folder/quarantine-file.ts'
import { MembershipCacheFile } from '../../store/folder/membership-cache-file.ts'
import {
  type StartedLogAndConsensus,
  startInCallingThread,
  startThreads,
} from '../../threads/start-threads.ts'
import type { ControllerDeps } from '../controller-deps.ts'
import type { ActiveIdentity } from '../active-identity.ts'
import type { ReleaseStack } from '../release-stack.ts'
import type { RunningOptions } from '../running-options.ts'
import { ownApiAddresses, configuredCoreOptions } from '../settings.ts'
import { hasOtherVoters, membershipFromRecord } from '../start/known-voters.ts'
import { programVersion } from '../version.ts'

interface ClusterNodeSources {
  readonly controller: ControllerDeps
  readonly running: RunningOptions
  readonly startedAtMs: number
  readonly folder: DataIdentity
  readonly machine: StateMachine
  /** Members according to the membership cache at the start. */
  readonly roster: MembershipRecord | null
  readonly inForce: ActiveIdentity
  readonly releases: ReleaseStack
  readonly onFatal: (error: Error) => void
  readonly onStateReplaced: () => Promise<void>
  readonly onSelfRefused: (refusal: ClusterRefusal) => void
}

/**
 * Starts Raft and WAL on the data folder, each in a separate thread unless the configuration turns
 * threads off.
 * @returns the node, which is not started yet, and the commit index of its log.
 */
export async function openClusterNode(
  sources: ClusterNodeSources,
): Promise<{ readonly clusterNode: ClusterNode; readonly committedIndex: number }> {
  const { controller, folder, machine, releases } = sources
  const { config, log, audit = null } = controller
  const options = consensusOptions(sources)
  const consensus = await startConsensus(sources, options)
  releases.push(() => consensus.close())
  logRepairs(consensus, controller)
  const roster = new MembershipCacheFile(config.data, (err) =>
    log.warn({ err }, 'cannot write the membership cache (ROSTER)'),
  )
  releases.push(() => roster.settled())
  const parts: ClusterNodeDeps = {
    link: consensus.link,
    machine,
    clock: systemClock,
    log,
    ...(audit === null ? {} : { audit }),
    memory: new KnownMembersFile(config.data),
    quarantineMark: new QuarantineFile(config.data),
    onFatal: sources.onFatal,
    onStateReplaced: sources.onStateReplaced,
    onRoster: (record) => roster.write(record),
    onSelfRefused: sources.onSelfRefused,
  }
  const { boot, committedIndex } = consensus
  const clusterNode = new ClusterNode(nodeOptions(sources, options, folder, boot), parts)
  return { clusterNode, committedIndex }
}

function nodeOptions(
  { controller: { config }, running, inForce }: ClusterNodeSources,
  { version, startedAtMs, apiAddresses }: ConsensusOptions,
  { clusterId, generation, storeId }: DataIdentity,
  boot: number,
): ClusterNodeOptions {
  const { log, limits, cluster } = config
  return {
    ...defaultClusterNodeOptions,
    self: {
      id: config.id,
      version,
      startedAtMs,
      apiAddresses,
      address: cluster.advertise,
      get certificatePem() {
        return inForce.leafPem
      },
      get priority() {
        return running.config.cluster.priority
      },
    },
    clusterId,
    generation,
    storeId,
    boot,
    proposeTimeoutMs: limits.writeTimeoutMs,
    outstandingMax: limits.outstandingWritesMax,
    // Below this free space an alarm is raised. The limit is high, so that the operator gets the
    // alarm long before the log stops accepting entries.
    lowSpaceBytes: 8 * log.lowSpaceBytes,
    stateBytesPerSecond: config.cluster.snapshotBytesPerSecond,
    retention: {
      entries: log.retainEntries,
      bytes: log.retainBytes,
      catchUpBytes: log.catchUpBytes,
    },
  }
}

async function startConsensus(
  { controller, machine, roster }: ClusterNodeSources,
  host: ConsensusOptions,
): Promise<StartedLogAndConsensus> {
  const { config } = controller
  const { position, configuration, cameBySnapshot } = machine.persistedMark()
  const known = [{ configuration, index: position.index }, membershipFromRecord(roster)]
  const log = {
    segmentBytes: config.log.segmentBytes,
    freeBytesMin: config.log.lowSpaceBytes,
    statePosition: position.index === 0 ? null : position,
    stateCameBySnapshot: cameBySnapshot,
    hasOtherVoters: hasOtherVoters(config.id, known),
  }
  const start = { dir: config.data, log, host }
  return config.threads ? await startThreads(start) : startInCallingThread(start)
}

function logRepairs({ cutBytes, repair }: StartedLogAndConsensus, { log }: ControllerDeps): void {
  if (cutBytes > 0) log.warn({ bytes: cutBytes }, 'truncated a torn write at the tail of the log')
  if (repair === null) return
  const { finding, ...fields } = repair
  log.error(
    fields,
    `${finding}; the log restarts after the applied state, and peers send the missing entries`,
  )
}

function consensusOptions(sources: ClusterNodeSources): ConsensusOptions {
  const { controller, folder, machine, roster, startedAtMs } = sources
  const { config, credentials } = controller
  const { certificatePem, privateKeyPem, caPem } = credentials
  const mark = machine.persistedMark()
  return {
    selfId: config.id,
    clusterId: folder.clusterId,
    generation: folder.generation,
    storeId: folder.storeId,
    trustDomain: config.trustDomain,
    identity: { certificatePem, privateKeyPem, caPem },
    bind: config.cluster.bind,
    advertise: config.cluster.advertise,
    addressHints: [],
    version: `v${programVersion()}`,
    startedAtMs,
    apiAddresses: ownApiAddresses(config),
    applied: mark.position,
    appliedTimeMs: machine.logTimeMs + machine.setbackMs,
    appliedSetbackMs: machine.setbackMs,
    configuration: toBinary(ConfigurationSchema, mark.configuration),
    roster,
    seeds: config.cluster.seeds,
    resolvers: config.cluster.resolvers,
    lastAddressesFile: join(config.data, 'last-addresses.json'),
    sharedOptionsSha256: clusterScopeOptionsSha256(config),
    tickMs: config.raft.tickMs,
    core: configuredCoreOptions(config),
    snapshots: { bytesPerSecond: config.cluster.snapshotBytesPerSecond },
  }
}

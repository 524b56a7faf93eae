import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { NodeHealth } from '../../ports/node-health.ts'
import { configurationFailureTolerance } from './failure-tolerance.ts'
import type { ClusterNodeStatus } from './cluster-node-status.ts'
import type { ConsensusStats } from '../../ports/stats.ts'

/** The data from which the health document of a controller is made. */
interface HealthSources {
  readonly cluster: ClusterView
  readonly record: ConfigurationRecord
  readonly status: ClusterNodeStatus
  readonly vitals: ConsensusStats
  readonly mainLoopDelayP99Ms: number
  /** Time since this controller last had applied all committed entries. */
  readonly behindMs: number
}

/** Health of this controller, and of the members as this controller sees them. */
export function nodeHealth(sources: HealthSources): NodeHealth {
  const { cluster, record, status, vitals, mainLoopDelayP99Ms, behindMs } = sources
  const views = cluster.members()
  const self = views.find(({ id }) => id === cluster.selfId)
  const connected = new Set(views.filter((view) => view.connected).map(({ id }) => id))
  const { voters, votersConnected, spare, nextRisk } = configurationFailureTolerance(record, (id) =>
    connected.has(id),
  )
  const commitKnown = Math.max(status.commit, ...views.map((view) => view.progress?.commit ?? 0))
  const lagEntries = Math.max(0, commitKnown - status.applied)
  return {
    id: cluster.selfId,
    clusterId: cluster.clusterId,
    generation: cluster.generation,
    version: self?.version ?? '',
    startedAtMs: self?.startedAtMs ?? 0,
    role: self?.progress?.role ?? status.role,
    term: status.term,
    leaderId: status.leader,
    leaderContactMs: cluster.leaderContactMs(),
    commit: status.commit,
    applied: status.applied,
    persisted: status.persisted,
    lagEntries,
    lagMs: lagEntries === 0 ? 0 : Math.round(behindMs),
    fsyncP99Ms: rounded(vitals.disk.fsync.p99Ms),
    loopDelayP99Ms: {
      main: rounded(mainLoopDelayP99Ms),
      raft: rounded(vitals.loopDelayP99Ms),
    },
    members: views.map(({ id, voter, progress, lastContactMs, connected: is, vitals: of }) => ({
      id,
      voter,
      role: progress?.role ?? 'unknown',
      connected: is,
      lastContactMs,
      commit: progress?.commit ?? 0,
      applied: progress?.applied ?? 0,
      lagEntries: Math.max(0, commitKnown - (progress?.applied ?? 0)),
      fsyncP99Ms: rounded(of?.fsyncP99Ms ?? 0),
      loopDelayP99Ms: rounded(of?.loopDelayP99Ms ?? 0),
      clockOffsetMs: Math.round(of?.clockOffsetMs ?? 0),
    })),
    voters,
    votersConnected,
    failureTolerance: Math.max(-1, spare),
    failureToleranceMax: Math.max(-1, configurationFailureTolerance(record, () => true).spare),
    nextRisk,
    alarms: status.alarms.map(({ severity, ...alarm }) => ({
      ...alarm,
      isCritical: severity === 'critical',
    })),
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10
}

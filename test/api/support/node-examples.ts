import { LatencyHistogram } from '../../../src/lib/runtime/latency-histogram.ts'
import type { NodeHealth } from '../../../src/ports/node-health.ts'
import {
  type ConsensusStats,
  ZERO_DISK_STATS,
  NO_MEMORY,
  ZERO_CONSENSUS_STATS,
} from '../../../src/ports/stats.ts'

export const nodeHealthExample: NodeHealth = {
  id: 'ctrl1',
  clusterId: 'cluster-1',
  generation: 3,
  version: 'v1.2.3',
  startedAtMs: 1,
  role: 'leader',
  term: 2,
  leaderId: 'ctrl1',
  leaderContactMs: 0,
  commit: 9,
  applied: 8,
  persisted: 7,
  lagEntries: 1,
  lagMs: 12,
  fsyncP99Ms: 0.2,
  loopDelayP99Ms: { main: 3, raft: 4 },
  members: [
    {
      id: 'ctrl2',
      voter: true,
      role: 'follower',
      connected: false,
      lastContactMs: 1500,
      commit: 9,
      applied: 8,
      lagEntries: 40,
      fsyncP99Ms: 0,
      loopDelayP99Ms: 0,
      clockOffsetMs: 0,
    },
  ],
  voters: 2,
  votersConnected: 2,
  failureTolerance: 0,
  failureToleranceMax: 1,
  nextRisk: 'losing one more voter stops writes',
  alarms: [{ code: 'CLOCK_SKEW', text: 'a clock is off', sinceMs: 1, isCritical: false }],
}

const fsync = new LatencyHistogram()
for (const ms of [0.2, 0.2]) fsync.record(ms, 1000)

export const vitalsExample: ConsensusStats = {
  ...ZERO_CONSENSUS_STATS,
  disk: { ...ZERO_DISK_STATS, fsync: fsync.counts(1000) },
  elections: 3,
  loopDelayP99Ms: 4,
  queuedBytes: 77,
  memory: { ...NO_MEMORY, externalBytes: 55 },
  logBytes: 66,
}

import { Counter, Gauge, type Registry } from 'prom-client'
import { LATENCY_BOUNDS_MS } from '../../lib/runtime/latency-histogram.ts'
import { readThreadMemory } from '../../lib/runtime/thread-memory.ts'
import type { NodeHealth } from '../../ports/node-health.ts'
import type { SoftStateCounts } from '../../ports/soft-state.ts'
import type { ConsensusStats } from '../../ports/stats.ts'
import { addHistogram } from './counted-histogram.ts'
import { createCounterAdder, createGaugeAdder } from './metric-adders.ts'

export interface NodeMetricsSources {
  readonly vitals: () => ConsensusStats
  /** State of the node; undefined until the node has reported its state. */
  readonly node: () => NodeHealth | undefined
  /** Number of request ids whose outcome is stored. */
  readonly requestIds: () => number
  /**
   * Time of the last scheduled backup, UTC ms; 0 before the first one; null if this controller
   * makes no scheduled backups.
   */
  readonly lastBackupMs: () => number | null
  /**
   * Counts of the soft state (state that is exchanged outside of the log); null: there is no soft
   * state.
   */
  readonly softState: () => SoftStateCounts | null
}

const ROLES = ['leader', 'follower', 'candidate', 'preCandidate', 'learner'] as const

/**
 * Adds metrics of consensus, the log, the state machine, the mesh and the event loops of this
 * process, read at each scrape.
 */
export function addNodeMetrics(
  registry: Registry,
  { vitals, node, requestIds, lastBackupMs, softState }: NodeMetricsSources,
): void {
  addRaftMetrics(registry, vitals, node)
  const registers = [registry]
  const counter = createCounterAdder(registry)
  const gauge = createGaugeAdder(registry)
  gauge(
    'flotilla_apply_lag_entries',
    'Committed log entries that this controller has not applied yet.',
    () => node()?.lagEntries ?? 0,
  )
  gauge(
    'flotilla_apply_lag_seconds',
    'Time since this controller last had applied all committed log entries.',
    () => (node()?.lagMs ?? 0) / 1000,
  )
  counter(
    'flotilla_wal_written_bytes_total',
    'Bytes written to log and metadata.',
    () => vitals().disk.writtenBytes,
  )
  gauge(
    'flotilla_wal_free_bytes',
    'Free bytes on the disk of the log; -1: unknown.',
    () => vitals().disk.freeBytes ?? -1,
  )
  const fsync = {
    name: 'flotilla_wal_fsync_duration_seconds',
    help: 'Duration of fdatasync calls for the log.',
  }
  addHistogram(registry, fsync, LATENCY_BOUNDS_MS, () => [{ labels: {}, ...vitals().disk.fsync }])
  counter(
    'flotilla_mesh_dropped_frames_total',
    'Messages dropped because the queue of a peer was full.',
    () => vitals().droppedFrames,
  )
  gauge(
    'flotilla_mesh_queued_bytes',
    'Bytes of Raft messages that wait to be sent to peers.',
    () => vitals().queuedBytes,
  )
  new Gauge({
    name: 'flotilla_loop_delay_p99_seconds',
    help: 'Event loop delay, 99th percentile of the last seconds.',
    labelNames: ['thread'],
    registers,
    collect() {
      this.set({ thread: 'main' }, (node()?.loopDelayP99Ms.main ?? 0) / 1000)
      this.set({ thread: 'raft' }, vitals().loopDelayP99Ms / 1000)
    },
  })
  gauge(
    'flotilla_cluster_failure_tolerance',
    'Failure tolerance: number of voters that may fail without stopping writes; -1: no quorum.',
    () => node()?.failureTolerance ?? -1,
  )
  gauge(
    'flotilla_log_kept_entries',
    'Log entries that are retained in memory for lagging members.',
    () => vitals().logEntries,
  )
  gauge(
    'flotilla_log_kept_bytes',
    'Bytes of the log entries that are retained in memory for lagging members.',
    () => vitals().logBytes,
  )
  gauge(
    'flotilla_request_ids',
    'Number of request ids whose outcome the cluster still stores.',
    requestIds,
  )
  addLastBackup(registry, lastBackupMs)
  addMemory(registry, vitals)
  addSoftState(registry, softState)
  addAlarms(registry, () => node()?.alarms ?? [])
  addMembers(registry, () => node()?.members ?? [])
}

/** Adds metrics of this controller's Raft role, of leader changes, and of its proposals. */
function addRaftMetrics(
  registry: Registry,
  vitals: NodeMetricsSources['vitals'],
  node: NodeMetricsSources['node'],
): void {
  const registers = [registry]
  const counter = createCounterAdder(registry)
  new Gauge({
    name: 'flotilla_raft_role',
    help: '1 for the current Raft role of this controller, 0 for other roles.',
    labelNames: ['role'],
    registers,
    collect() {
      for (const role of ROLES) this.set({ role }, node()?.role === role ? 1 : 0)
    },
  })
  const raft = 'flotilla_raft_'
  counter(
    `${raft}elections_total`,
    'Elections started by this controller.',
    () => vitals().elections,
  )
  counter(
    `${raft}leader_changes_total`,
    'Leader changes that this controller observed.',
    () => vitals().leaderChanges,
  )
  counter(
    `${raft}proposals_accepted_total`,
    'Proposals appended as leader.',
    () => vitals().proposalsAccepted,
  )
  counter(
    `${raft}proposals_refused_total`,
    'Proposals that this controller refused as leader before it appended them to the log.',
    () => vitals().proposalsRefused,
  )
}

function addAlarms(registry: Registry, alarms: () => NodeHealth['alarms']): void {
  new Gauge({
    name: 'flotilla_alarms',
    help: 'Active alarms by code; inactive alarms are absent.',
    labelNames: ['code', 'critical'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { code, isCritical } of alarms()) {
        this.inc({ code, critical: String(isCritical) })
      }
    },
  })
}

/** The other members, as this controller sees them. */
function addMembers(registry: Registry, members: () => NodeHealth['members']): void {
  const gauge = (
    name: string,
    help: string,
    read: (member: NodeHealth['members'][number]) => number | null,
  ): void => {
    new Gauge({
      name,
      help,
      labelNames: ['member'],
      registers: [registry],
      collect() {
        this.reset()
        for (const member of members()) {
          const value = read(member)
          if (value !== null) this.set({ member: member.id }, value)
        }
      },
    })
  }
  gauge('flotilla_member_connected', '1 while a member is connected.', ({ connected }) =>
    connected ? 1 : 0,
  )
  gauge(
    'flotilla_member_lag_entries',
    'Committed entries that a member has not applied.',
    ({ lagEntries }) => lagEntries,
  )
  gauge(
    'flotilla_member_last_contact_seconds',
    'Time since the last contact with a member; absent if there was none.',
    ({ lastContactMs }) => (lastContactMs === null ? null : lastContactMs / 1000),
  )
}

/**
 * Adds the time of the last scheduled backup, unless this controller makes no scheduled backups;
 * otherwise an alert on the backup's age would never clear.
 */
function addLastBackup(registry: Registry, lastBackupMs: () => number | null): void {
  new Gauge({
    name: 'flotilla_backup_last_success_timestamp_seconds',
    help: 'Time of the newest scheduled backup, Unix time; 0: none yet.',
    registers: [registry],
    collect() {
      const lastMs = lastBackupMs()
      if (lastMs === null) this.remove()
      else this.set(lastMs / 1000)
    },
  })
}

/**
 * Adds counts of soft state. Values with unknown topics come from a newer release; the other
 * counters show a fault of a peer, or values that exceed a limit.
 */
function addSoftState(registry: Registry, read: () => SoftStateCounts | null): void {
  new Gauge({
    name: 'flotilla_soft_state_bytes',
    help: 'Bytes of soft state (data that controllers keep only in memory) from all controllers.',
    registers: [registry],
    collect() {
      this.set(read()?.bytes ?? 0)
    },
  })
  new Counter({
    name: 'flotilla_soft_state_ignored_values_total',
    help: 'Number of soft-state values from other controllers that this controller discarded, by reason.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset()
      const { unknownTopics = 0, malformed = 0, tooLarge = 0 } = read() ?? {}
      this.inc({ reason: 'unknownTopic' }, unknownTopics)
      this.inc({ reason: 'malformed' }, malformed)
      this.inc({ reason: 'tooLarge' }, tooLarge)
    },
  })
}

function addMemory(registry: Registry, vitals: () => ConsensusStats): void {
  const kinds = [
    ['heap_used', 'heapUsedBytes', 'Used JavaScript heap of a thread.'],
    ['heap_total', 'heapTotalBytes', 'Size of the JavaScript heap of a thread.'],
    ['external', 'externalBytes', 'Memory of buffers outside the heap.'],
  ] as const
  for (const [kind, key, help] of kinds) {
    new Gauge({
      name: `flotilla_thread_${kind}_bytes`,
      help,
      labelNames: ['thread'],
      registers: [registry],
      collect() {
        this.set({ thread: 'main' }, readThreadMemory()[key])
        this.set({ thread: 'raft' }, vitals().memory[key])
        this.set({ thread: 'wal' }, vitals().disk.memory[key])
      },
    })
  }
}

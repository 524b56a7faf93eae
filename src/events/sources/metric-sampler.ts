import { randomUUID } from 'node:crypto'

import { entityByKind } from '../../entities/registry.ts'
import type { Clock } from '../../lib/clock.ts'
import { readProcessMemory } from '../../lib/runtime/thread-memory.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { NamedMetric } from '../../ports/observations.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ConsensusStats } from '../../ports/stats.ts'
import type { DialCounter } from './dial-counter.ts'
import type { EventBus } from '../event-bus.ts'
import { publishedKinds } from '../published-records.ts'
import { entityCountEvent } from '../subjects/entity-count.ts'
import { metricEvent } from '../subjects/metrics.ts'
import { dialEvent } from '../subjects/service.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

interface SamplerDeps {
  readonly bus: EventBus
  readonly cluster: Pick<ClusterView, 'selfId' | 'members' | 'leaderId' | 'leaderContactMs'>
  readonly state: Pick<StateView, 'count' | 'appliedIndex'>
  readonly vitals: () => ConsensusStats
  readonly clock: Clock
  readonly dials: DialCounter
  readonly metricsIntervalMs: number
  readonly entityCountIntervalMs: number
}

/**
 * At each interval, emits metrics of this controller, counts of dials and, on the leader, counts of
 * records, each only while a reader subscribes to them.
 */
export class MetricSampler {
  readonly #deps: SamplerDeps
  readonly #stopTimers: (() => void)[] = []

  constructor(parts: SamplerDeps) {
    this.#deps = parts
  }

  start(): void {
    const { metricsIntervalMs, entityCountIntervalMs } = this.#deps
    this.#stopTimers.push(periodicScheduler.every(metricsIntervalMs, () => this.publishMetrics()))
    this.#stopTimers.push(periodicScheduler.every(metricsIntervalMs, () => this.publishDials()))
    this.#stopTimers.push(
      periodicScheduler.every(entityCountIntervalMs, () => this.publishCounts()),
    )
  }

  stop(): void {
    for (const stop of this.#stopTimers.splice(0)) stop()
  }

  publishMetrics(): void {
    const { bus, clock, cluster } = this.#deps
    if (!bus.isWanted('metrics')) return
    const source = { id: cluster.selfId, eventId: randomUUID(), atMs: clock.nowMs(), tags: {} }
    for (const figure of this.#figures()) bus.emitLive(metricEvent(figure, source))
  }

  publishDials(): void {
    const { bus, clock, dials } = this.#deps
    const { counts, interval } = dials.take(clock.nowMs())
    if (!bus.isWanted('service')) return
    for (const count of counts) bus.emitLive(dialEvent(count, interval))
  }

  publishCounts(): void {
    const { bus, clock, cluster, state } = this.#deps
    if (!bus.isWanted('entityCount') || cluster.leaderId() !== cluster.selfId) return
    const counts = publishedKinds.map((kind) => [entityByKind[kind].plural, state.count(kind)])
    bus.emitLive(
      entityCountEvent(Object.fromEntries(counts) as Record<string, number>, clock.nowMs()),
    )
  }

  #figures(): readonly NamedMetric[] {
    const { cluster, state, vitals } = this.#deps
    const members = cluster.members()
    const own = members.find(({ id }) => id === cluster.selfId)
    const { disk, ...host } = vitals()
    const whole = {
      'raft.applied_index': state.appliedIndex,
      'raft.commit_index': own?.progress?.commit ?? 0,
      'raft.term': own?.progress?.term ?? 0,
      'raft.is_leader': cluster.leaderId() === cluster.selfId ? 1 : 0,
      'raft.leader_contact_ms': Math.min(cluster.leaderContactMs(), Number.MAX_SAFE_INTEGER),
      'raft.members_connected': members.filter(({ connected }) => connected).length,
      'raft.elections': host.elections,
      'raft.leader_changes': host.leaderChanges,
      'raft.proposals_accepted': host.proposalsAccepted,
      'raft.proposals_refused': host.proposalsRefused,
      'raft.log_entries': host.logEntries,
      'raft.log_bytes': host.logBytes,
      'mesh.dropped_frames': host.droppedFrames,
      'mesh.queued_bytes': host.queuedBytes,
      'disk.written_bytes': disk.writtenBytes,
      'process.resident_bytes': readProcessMemory().rss,
    }
    const parts = {
      'disk.fsync_p99_ms': disk.fsync.p99Ms,
      'raft.loop_delay_p99_ms': host.loopDelayP99Ms,
    }
    return [...figuresOf(whole, 'intValue'), ...figuresOf(parts, 'floatValue')]
  }
}

function figuresOf(
  values: Readonly<Record<string, number>>,
  type: NamedMetric['type'],
): NamedMetric[] {
  return Object.entries(values).map(([name, value]) => ({ name, type, values: { value } }))
}

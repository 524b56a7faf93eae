import type { Clock } from '../lib/clock.ts'
import type { AppliedEntry, ReplicatedStateMachine } from '../ports/replicated-state-machine.ts'
import type { PeerChannel } from './peer-channel.ts'
import type { Entry, Index, NodeId, Position } from '../raft/types.ts'
import type { ClusterObserver } from './cluster-observer.ts'
import type { QuarantineRecord } from './state-transfer/quarantine.ts'
import { StateDivergenceHandler } from './state-transfer/state-divergence-handler.ts'
import type { Alarms } from './health/alarms.ts'
import type { ConsensusThreadStatus, MainThreadLink } from './thread-channel.ts'
import type { Logger } from './logger.ts'
import { ApplyQueue } from './replication/apply-queue.ts'
import { SnapshotLogRetention } from './state-transfer/snapshot-log-retention.ts'
import { LogRetention, type RetentionOptions } from './state-transfer/log-retention.ts'
import { type SnapshotEvent, SnapshotStoreWorker } from './state-transfer/snapshot-store-worker.ts'

/**
 * This thread reports the applied index to the consensus thread at this interval, or after this
 * number of entries. The consensus thread uses the index only to limit a lag that is much larger.
 */
const PROGRESS_MS = 10
const PROGRESS_ENTRIES = 1024

interface StateFollowerDeps {
  readonly selfId: NodeId
  readonly machine: ReplicatedStateMachine
  readonly link: MainThreadLink
  readonly clock: Clock
  readonly log: Logger
  readonly alarms: Alarms
  readonly peers: PeerChannel
  readonly retention: RetentionOptions
  readonly quarantineMark: QuarantineRecord | null
  /** Maximum bytes per second that this controller sends to members that rebuild their state. */
  readonly bytesPerSecond: number
  readonly observer: () => ClusterObserver
  /**
   * Rebuilds everything that is derived from the state, after a new state replaced the old one;
   * resolves when that is done.
   */
  readonly onStateReplaced: () => Promise<void>
  readonly onApplied: (applied: AppliedEntry) => void
  /** Called when a snapshot has become the state. The outcomes of entries inside it are unknown. */
  readonly onRestored: () => void
  /** Called when the state is found to differ from the majority's. */
  readonly onQuarantine: () => void
  /** Called on a leader with a wrong state, which must transfer leadership. */
  readonly handOver: () => void
  readonly onFatal: (error: Error) => void
}

/**
 * Makes the state follow the log: applies entries in order, compacts the log up to the persisted
 * state, replaces a state that fell too far behind with a snapshot, and repairs a state that
 * differs from other members.
 */
export class StateFollower {
  readonly #deps: StateFollowerDeps
  readonly #applyQueue: ApplyQueue
  readonly #retention: LogRetention
  readonly #catchUps: SnapshotLogRetention
  readonly #snapshots: SnapshotStoreWorker
  readonly guard: StateDivergenceHandler
  /** Timestamp of the last applied entry. It exceeds log time if an operator has reset log time. */
  #stampMs: number
  #progressTimer: NodeJS.Timeout | null = null
  #reportedApplied: Index = 0

  constructor(deps: StateFollowerDeps) {
    const { machine, link, clock } = deps
    this.#deps = deps
    this.#retention = new LogRetention(deps.retention)
    this.#catchUps = new SnapshotLogRetention(deps.alarms, clock, (index) =>
      this.#retention.isNear(index),
    )
    this.guard = this.#makeGuard()
    const [catchUps, guard] = [this.#catchUps, this.guard]
    this.#snapshots = new SnapshotStoreWorker(machine, link, { catchUps, guard })
    this.#applyQueue = new ApplyQueue({
      machine,
      clock,
      onApplied: (entry, applied) => this.#onApplied(entry, applied),
      onProgress: () => this.#planProgress(),
      onFailed: (error) => this.#onApplyFailed(error),
    })
    this.#stampMs = machine.persistedMark().timeMs + machine.setbackMs
    if (this.guard.isHeld) this.#applyQueue.pause()
    machine.onPersisted = (position) => this.#onPersisted(position)
    machine.onFailed = (error) => deps.onFatal(error)
  }

  /** Accepts committed entries from the consensus thread. */
  push(entries: Uint8Array): void {
    this.#applyQueue.push(entries)
  }

  onSnapshotEvent(event: SnapshotEvent): void {
    this.#snapshots.handle(event)
  }

  onStatus(status: ConsensusThreadStatus): void {
    this.#catchUps.look(status)
  }

  sweep(): void {
    if (this.guard.sweep()) this.reportProgress()
  }

  reportProgress(): void {
    if (this.#progressTimer !== null) clearTimeout(this.#progressTimer)
    this.#progressTimer = null
    this.#reportedApplied = this.#applyQueue.applied
    const applied = this.#reportedApplied
    const { link, machine } = this.#deps
    link.post({ type: 'progress', applied, timeMs: this.#stampMs, setbackMs: machine.setbackMs })
  }

  /** Installs the received snapshot as the state. */
  async restore(id: number): Promise<void> {
    // @guard 28-apply-goes-on-during-an-install
    this.#applyQueue.pause()
    this.guard.beginReplacing()
    try {
      await this.#snapshots.restore(id)
      await this.#deps.onStateReplaced()
      this.#retention.reset()
      this.guard.endReplacing()
      this.#stampMs = this.#stampOfMark()
      this.#applyQueue.restartAfter(this.#deps.machine.progress().applied)
      this.reportProgress()
      this.#deps.onRestored()
    } catch (error) {
      this.#deps.onFatal(new Error(`cannot install the received snapshot: ${String(error)}`))
    }
  }

  stop(): void {
    if (this.#progressTimer !== null) clearTimeout(this.#progressTimer)
    this.#applyQueue.stop()
    this.#snapshots.close()
  }

  #makeGuard(): StateDivergenceHandler {
    const { machine, clock, log, alarms, peers, selfId, observer } = this.#deps
    return new StateDivergenceHandler({
      machine,
      clock,
      log,
      alarms,
      peers,
      selfId,
      derive: this.#deps.onStateReplaced,
      mark: this.#deps.quarantineMark,
      voters: () => observer().voters,
      leaderId: () => observer().status.leader,
      isFailing: (id) => observer().presenceOf(id)?.presence.isFailing ?? false,
      receivedChunks: () => this.#snapshots.receivedChunks,
      dropReceived: () => this.#snapshots.dropReceived(),
      onQuarantine: () => this.#onQuarantine(),
      hold: () => this.#applyQueue.pause(),
      resumeApply: () => this.#applyQueue.resumeAfter(machine.progress().applied),
      onReplaced: () => this.#onReplaced(),
      onRelease: () => observer().announce(),
      handOver: this.#deps.handOver,
      bytesPerSecond: this.#deps.bytesPerSecond,
      onFatal: this.#deps.onFatal,
    })
  }

  #onQuarantine(): void {
    this.#deps.onQuarantine()
    this.#snapshots.endSendings('state differs from the majority')
    this.#deps.observer().announce()
  }

  #stampOfMark(): number {
    const { machine } = this.#deps
    return machine.persistedMark().timeMs + machine.setbackMs
  }

  /** Called when the state of another member was installed; the log does not change. */
  #onReplaced(): void {
    this.#stampMs = Math.max(this.#stampMs, this.#stampOfMark())
    this.#applyQueue.resumeAfter(this.#deps.machine.progress().applied)
    this.reportProgress()
  }

  #onApplied(entry: Entry, applied: AppliedEntry): void {
    this.#retention.note(entry)
    this.#stampMs = entry.timeMs
    this.guard.onApplied(entry.index)
    this.#deps.onApplied(applied)
  }

  #onApplyFailed(error: Error): void {
    this.#deps.alarms.raise('APPLY_STOPPED', { fault: error.message })
    this.#deps.onFatal(error)
  }

  #planProgress(): void {
    if (this.#applyQueue.applied - this.#reportedApplied >= PROGRESS_ENTRIES) {
      this.reportProgress()
    } else {
      this.#progressTimer ??= setTimeout(() => this.reportProgress(), PROGRESS_MS)
    }
  }

  #onPersisted(position: Position): void {
    this.#applyQueue.goOn()
    this.reportProgress()
    const slowest = this.#deps.observer().slowestCommit
    const cut = this.#retention.cut(position.index, slowest, this.#catchUps.neededAfter)
    if (cut === null) return
    this.#catchUps.noteCut(cut.index)
    this.#deps.link.post({ type: 'compact', position: cut })
  }
}

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { ObservationSink } from '../../ports/observations.ts'
import type { EventBus } from '../event-bus.ts'
import { clusterEvent } from '../subjects/cluster.ts'

/** An active alarm, with the fields that its events contain. */
export interface RaisedAlarm {
  readonly code: string
  readonly text: string
  readonly sinceMs: number
  readonly severity: 'warning' | 'critical'
}

interface ClusterWatchDeps {
  readonly bus: EventBus
  readonly cluster: Pick<ClusterView, 'selfId' | 'members' | 'leaderId' | 'leaderContactMs'>
  readonly alarms: () => readonly RaisedAlarm[]
  readonly clock: Clock
  readonly publishFact: ObservationSink
}

const LOOK_MS = 500
/** A controller that has had no leader for this time counts as read-only. */
const LEADERLESS_MS = 2000

/**
 * Compares members, leadership and alarms with their previous state, and emits events for the
 * differences.
 */
export class ClusterWatch {
  readonly #deps: ClusterWatchDeps
  #stopTimer: (() => void) | null = null
  #connected = new Map<string, MemberView>()
  #membersText = ''
  #leaderId: string | null = null
  #isReadOnly = false
  #hasLooked = false
  #alarms = new Map<string, RaisedAlarm>()

  constructor(deps: ClusterWatchDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(LOOK_MS, () => this.look())
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  look(): void {
    this.#lookAtAlarms()
    const { cluster } = this.#deps
    const members = cluster.members()
    if (members.length === 0) return
    this.#lookAtPeers(members)
    this.#lookAtMembers(members)
    this.#lookAtLeader(cluster.leaderId(), cluster.leaderContactMs())
    this.#hasLooked = true
  }

  #lookAtPeers(members: readonly MemberView[]): void {
    const { cluster, bus, publishFact } = this.#deps
    const now = new Map<string, MemberView>()
    for (const member of members) {
      if (!member.connected || member.id === cluster.selfId) continue
      now.set(member.id, member)
      if (this.#connected.has(member.id)) continue
      this.#emit('peer.connected', [member])
      const source = { type: 'peer', id: member.id } as const
      const target = { type: 'ctrl', id: bus.selfId } as const
      publishFact({
        kind: 'connect',
        source,
        sourceAddress: member.address,
        target,
        targetAddress: '',
      })
    }
    for (const [id, member] of this.#connected) {
      if (!now.has(id)) this.#emit('peer.disconnected', [member])
    }
    this.#connected = now
  }

  #lookAtMembers(members: readonly MemberView[]): void {
    const text = JSON.stringify(members.map(({ id, address, voter }) => [id, address, voter]))
    if (text === this.#membersText) return
    this.#membersText = text
    if (this.#hasLooked) this.#emit('members.changed', members)
  }

  #lookAtLeader(leaderId: string | null, contactMs: number): void {
    const { selfId } = this.#deps.cluster
    const before = this.#leaderId
    this.#leaderId = leaderId
    if (before !== leaderId) {
      if (before === selfId) this.#emit('leadership.lost')
      if (leaderId === null && this.#hasLooked) this.#emit('state.is_leaderless')
      if (leaderId !== null && before === null) this.#emit('state.has_leader')
      if (leaderId === selfId) this.#emit('leadership.gained')
    }
    const isReadOnly = leaderId === null && contactMs > LEADERLESS_MS
    if (isReadOnly !== this.#isReadOnly) this.#emit(isReadOnly ? 'state.ro' : 'state.rw')
    this.#isReadOnly = isReadOnly
  }

  #lookAtAlarms(): void {
    const { alarms, publishFact } = this.#deps
    const now = new Map(alarms().map((alarm) => [`${alarm.code} ${alarm.sinceMs}`, alarm]))
    for (const [key, alarm] of now) {
      if (!this.#alarms.has(key)) publishFact({ kind: 'alarm', ...alarm, isOn: true })
    }
    for (const [key, alarm] of this.#alarms) {
      if (!now.has(key)) publishFact({ kind: 'alarm', ...alarm, isOn: false })
    }
    this.#alarms = now
  }

  #emit(type: string, members: readonly MemberView[] = []): void {
    const { bus, clock } = this.#deps
    const fact = { type, index: bus.appliedIndex, members, leaderId: this.#leaderId }
    bus.emitLive(clusterEvent(fact, clock.nowMs()))
  }
}

import type { PeerCaller } from './peer-channel.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index, NodeId, Position, Role, Term } from '../raft/types.ts'
import type { Logger, LogLevel } from './logger.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import { type HostStats, NO_VITALS } from '../ports/stats.ts'

/**
 * Messages between main and the Raft host. All values are plain and cloneable, so the host
 * may live in the same thread or in a worker; what is large crosses as one packed Uint8Array a
 * batch, whose buffer is handed over.
 */

export type RefusalCode = 'NO_LEADER' | 'NOT_LEADER' | 'OVERLOADED' | 'TOO_LARGE'

/** Commands of main to the host. Requests with an `id` are answered with the same id. */
export type HostCommand =
  /** First of all, when main is ready to hear: answered by `started`. */
  | { readonly type: 'start' }
  /** Packed by {@link packProposals}. Each is either refused or handed to a leader. */
  | { readonly type: 'propose'; readonly proposals: Uint8Array }
  | { readonly type: 'readIndex'; readonly id: number }
  /** `timeMs`: stamp of `applied`; `setbackMs`: how far log time is behind it. */
  | {
      readonly type: 'progress'
      readonly applied: Index
      readonly timeMs: number
      readonly setbackMs: number
    }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'transferLeadership'; readonly id: number; readonly target: NodeId | null }
  /** A membership.v1.Configuration, encoded: the members wanted, without outgoing voters. */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly configuration: Uint8Array
      /** Index of the configuration that it was derived from; null: of whichever is in force. */
      readonly basedOn: Index | null
    }
  | {
      readonly type: 'snapshotOpened'
      readonly id: number
      readonly position: Position
      readonly configuration: Uint8Array
    }
  /** One per credit. */
  | {
      readonly type: 'snapshotChunk'
      readonly id: number
      readonly data: Uint8Array
      readonly isLast: boolean
    }
  | { readonly type: 'snapshotFailed'; readonly id: number; readonly because: string }
  /** The chunk is taken: the next may come. */
  | { readonly type: 'receiveWritten'; readonly id: number }
  | {
      readonly type: 'receiveFinished'
      readonly id: number
      readonly position: Position
      readonly configuration: Uint8Array
    }
  | { readonly type: 'receiveFailed'; readonly id: number; readonly because: string }
  | { readonly type: 'restored'; readonly id: number }
  | {
      readonly type: 'note'
      readonly to: NodeId
      readonly topic: string
      readonly payload: Uint8Array
    }
  | {
      readonly type: 'call'
      readonly id: number
      readonly to: NodeId
      readonly method: string
      readonly payload: Uint8Array
    }
  | {
      readonly type: 'answerCall'
      readonly ticket: number
      readonly payload: Uint8Array
      readonly failure: CallFailure | null
    }
  /** A peer, in the process that it started then, has said that it has applied so much. */
  | {
      readonly type: 'heardApplied'
      readonly peer: NodeId
      readonly startedAtMs: number
      readonly applied: Index
    }
  /** New connections prove themselves with it; standing ones stay. */
  | { readonly type: 'identity'; readonly identity: MeshIdentity }
  | { readonly type: 'stop' }

/** A problem as it crosses between controllers. */
export interface CallFailure {
  readonly code: string
  readonly because: string
}

/** How far main has got. Digests are hex; empty when there is none yet. */
export interface MachineProgress {
  readonly applied: Index
  readonly persisted: Index
  readonly digestIndex: Index
  readonly digest: string
  readonly entitiesDigest: string
}

export type HostEvent =
  | { readonly type: 'started'; readonly port: number }
  /** Packed by src/raft/entry-codec.ts; in order, without gaps, from where the host was started. */
  | { readonly type: 'committed'; readonly entries: Uint8Array }
  /** These sequences were certainly not logged by this attempt. */
  | {
      readonly type: 'refused'
      readonly sequences: readonly number[]
      readonly code: RefusalCode
    }
  /**
   * Commands that were handed to a leader and not yet seen committed may be lost: propose them
   * again.
   */
  | { readonly type: 'handoverLost' }
  /** `index` null: no leader confirmed it. */
  | { readonly type: 'readIndex'; readonly id: number; readonly index: Index | null }
  /** `because` null: done, or under way for a transfer. */
  | { readonly type: 'answered'; readonly id: number; readonly because: string | null }
  | ({ readonly type: 'status' } & HostStatus)
  | { readonly type: 'snapshotWanted'; readonly id: number; readonly to: NodeId }
  | { readonly type: 'snapshotCredit'; readonly id: number; readonly chunks: number }
  /** `isSent`: the peer has it, and goes on with the log that follows. */
  | { readonly type: 'snapshotOver'; readonly id: number; readonly isSent: boolean }
  | { readonly type: 'receiveBegin'; readonly id: number; readonly from: NodeId }
  | { readonly type: 'receiveChunk'; readonly id: number; readonly data: Uint8Array }
  | { readonly type: 'receiveFinish'; readonly id: number }
  | { readonly type: 'receiveAbandoned'; readonly id: number }
  /** The core has taken the received snapshot: make it the live state, then answer `restored`. */
  | { readonly type: 'restore'; readonly id: number }
  | {
      readonly type: 'note'
      readonly from: NodeId
      readonly topic: string
      readonly payload: Uint8Array
    }
  /** Answered by `answerCall` with the same ticket. */
  | {
      readonly type: 'called'
      readonly ticket: number
      readonly caller: PeerCaller
      readonly method: string
      readonly payload: Uint8Array
    }
  | {
      readonly type: 'callAnswered'
      readonly id: number
      readonly payload: Uint8Array
      readonly failure: CallFailure | null
    }
  /** The streams that this member dials to a peer have come to stand, or have ended. */
  | { readonly type: 'link'; readonly peer: NodeId; readonly isReady: boolean }
  | ({ readonly type: 'selfRefused' } & SelfRefusal)
  /** Worth keeping beside log and state; at most once a second. */
  | { readonly type: 'roster'; readonly roster: MembershipRecord }
  | {
      readonly type: 'log'
      readonly level: LogLevel
      readonly fields: object
      readonly message: string
    }
  /** Nothing works any more; the process must stop. */
  | { readonly type: 'fatal'; readonly because: string }
  | { readonly type: 'stopped' }

/**
 * This member is not, or no longer, one of the cluster as it is. removed, other-store: a committed
 * configuration that came after the one that listed this disk lists this member not at all, or with
 * another disk. rolled-back: the disk is older than it was. not-yet-a-member: the peer knows of no
 * admission (it may merely lag). fenced: the peer is of a newer generation, begun without this
 * member. Repeated while it goes on, by each peer at most once a second.
 */
export interface SelfRefusal {
  readonly reason: 'removed' | 'other-store' | 'rolled-back' | 'not-yet-a-member' | 'fenced'
  /** Member that says so; this one itself when it read it in its own log. */
  readonly by: NodeId
  /** Index of the configuration that it rests on. */
  readonly index: Index
  /** Generation of the cluster, as the one who says so knows it. */
  readonly generation: number
}

/** The cluster removed this member, or another process took its place: it takes part no more. */
export function isRemovedOrFenced({ reason }: Pick<SelfRefusal, 'reason'>): boolean {
  return reason === 'removed' || reason === 'fenced'
}

/** Ages are in ms at the moment of sending: clocks of two threads have two zeros. */
export interface HostStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  /** Since a leader was last heard from; 0 for the leader itself, null when never. */
  readonly leaderSilentMs: number | null
  readonly commit: Index
  readonly last: Index
  /** Position up to which the log lacks what was promised (raft/owed.ts); null: nothing. */
  readonly owed: Position | null
  /** membership.v1.Configuration in force, encoded. */
  readonly configuration: Uint8Array
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /** Sorted by id; without this member itself. */
  readonly peers: readonly PeerReport[]
  readonly vitals: HostStats
}

/** Before the host's first word. */
export const NOTHING_HEARD: HostStatus = {
  role: 'follower',
  term: 0,
  leader: null,
  leaderSilentMs: null,
  commit: 0,
  last: 0,
  owed: null,
  configuration: new Uint8Array(0),
  configurationIndex: 0,
  isConfigurationCommitted: false,
  peers: [],
  vitals: NO_VITALS,
}

export interface PeerReport {
  readonly id: NodeId
  readonly address: string
  readonly isConnected: boolean
  readonly silentMs: number | null
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly {
    readonly api: string
    readonly url: string
    readonly version: string
  }[]
  readonly certificatePem: string
  /** The newest that it knows, as its Hello says; 0 when none was heard. */
  readonly featureLevel: number
  /** Known by the leader only. */
  readonly matchIndex: Index | null
}

/**
 * One end of a duplex message link. Messages arrive in order, in a later turn than they were posted
 * in.
 */
export interface ThreadLink<In, Out> {
  /** Set before the first message can arrive. */
  onMessage: (message: In) => void
  /** @param transfer buffers given away: they are of no more use to the sender. */
  post(message: Out, transfer?: readonly ArrayBuffer[]): void
  close(): void
}

export type MainLink = ThreadLink<HostEvent, HostCommand>
export type HostLink = ThreadLink<HostCommand, HostEvent>

class InlineEnd<In, Out> implements ThreadLink<In, Out> {
  onMessage: (message: In) => void = () => undefined
  peer: InlineEnd<Out, In> | null = null
  #queue: Out[] = []

  post(message: Out, transfer: readonly ArrayBuffer[] = []): void {
    if (this.peer === null) return
    // Buffers move as between threads: they are empty for the sender, and none can be sent twice.
    const isMoved = transfer.length > 0
    const sent = isMoved ? structuredClone(message, { transfer: [...transfer] }) : message
    this.#queue.push(sent)
    if (this.#queue.length === 1) setImmediate(() => this.#flush())
  }

  close(): void {
    this.#queue = []
    if (this.peer !== null) this.peer.peer = null
    this.peer = null
  }

  #flush(): void {
    const messages = this.#queue
    this.#queue = []
    for (const message of messages) this.peer?.onMessage(message)
  }
}

/** Both ends in one thread. */
export function inlineLink(): { readonly main: MainLink; readonly host: HostLink } {
  const main = new InlineEnd<HostEvent, HostCommand>()
  const host = new InlineEnd<HostCommand, HostEvent>()
  main.peer = host
  host.peer = main
  return { main, host }
}

/** Logger of the host's side, whose lines main writes: one process, one log. */
export function logOverLink(link: HostLink): Logger {
  const at = (level: LogLevel) => (fields: object, message: string) =>
    link.post({ type: 'log', level, fields, message })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

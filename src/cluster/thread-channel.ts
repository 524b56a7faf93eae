import type { PeerCaller } from './peer-channel.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index, NodeId, Position, Role, Term } from '../raft/types.ts'
import type { Logger, LogLevel } from './logger.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import { type ConsensusStats, ZERO_CONSENSUS_STATS } from '../ports/stats.ts'

/**
 * Messages between the main thread and the Raft host. All values can be cloned, so the host can run
 * in the same thread or in a worker. Large data is packed into one Uint8Array per batch, whose
 * buffer is transferred.
 */

export type ProposalForwardRefusalCode = 'NO_LEADER' | 'NOT_LEADER' | 'OVERLOADED' | 'TOO_LARGE'

/**
 * Commands from the main thread to the host. The host responds to a request that has an `id` with
 * the same id.
 */
export type ConsensusThreadCommand =
  /**
   * The first command, sent when the main thread can receive events; the host responds with
   * `started`.
   */
  | { readonly type: 'start' }
  /** Packed by {@link packProposals}. Each proposal is either refused or sent to a leader. */
  | { readonly type: 'propose'; readonly proposals: Uint8Array }
  | { readonly type: 'readIndex'; readonly id: number }
  /** `timeMs`: log time at `applied`; `setbackMs`: how far log time was set back. */
  | {
      readonly type: 'progress'
      readonly applied: Index
      readonly timeMs: number
      readonly setbackMs: number
    }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'transferLeadership'; readonly id: number; readonly target: NodeId | null }
  /** Encoded membership.v1.Configuration: the target members, without outgoing voters. */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly configuration: Uint8Array
      /** Index of the configuration that the target was derived from; null accepts any. */
      readonly basedOn: Index | null
    }
  | {
      readonly type: 'snapshotOpened'
      readonly id: number
      readonly position: Position
      readonly configuration: Uint8Array
    }
  /** One chunk of the snapshot, which uses up one credit (`snapshotCredit`). */
  | {
      readonly type: 'snapshotChunk'
      readonly id: number
      readonly data: Uint8Array
      readonly isLast: boolean
    }
  | { readonly type: 'snapshotFailed'; readonly id: number; readonly reason: string }
  /** The chunk is written; the host may send the next one. */
  | { readonly type: 'receiveWritten'; readonly id: number }
  | {
      readonly type: 'receiveFinished'
      readonly id: number
      readonly position: Position
      readonly configuration: Uint8Array
    }
  | { readonly type: 'receiveFailed'; readonly id: number; readonly reason: string }
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
      readonly failure: PeerCallFailure | null
    }
  /**
   * The applied index that a peer reported; the process of the peer has run since `startedAtMs`.
   */
  | {
      readonly type: 'heardApplied'
      readonly peer: NodeId
      readonly startedAtMs: number
      readonly applied: Index
    }
  /** New connections use this identity; open ones continue. */
  | { readonly type: 'identity'; readonly identity: MeshIdentity }
  | { readonly type: 'stop' }

/** A problem in the form that controllers send to each other. */
export interface PeerCallFailure {
  readonly code: string
  readonly reason: string
}

/** Progress of the main thread. Digests are hex, or empty before the first digest. */
export interface MainThreadProgress {
  readonly applied: Index
  readonly persisted: Index
  readonly digestIndex: Index
  readonly digest: string
  readonly entitiesDigest: string
}

export type ConsensusThreadEvent =
  | { readonly type: 'started'; readonly port: number }
  /**
   * Packed by src/raft/entry-codec.ts; in order and without gaps from the host's start position.
   */
  | { readonly type: 'committed'; readonly entries: Uint8Array }
  /** The proposals with these sequence numbers were certainly not logged by this attempt. */
  | {
      readonly type: 'refused'
      readonly sequences: readonly number[]
      readonly code: ProposalForwardRefusalCode
    }
  /**
   * The leader may have lost commands that were sent to it and are not committed; propose them
   * again.
   */
  | { readonly type: 'handoverLost' }
  /** `index` null: no leader confirmed the read. */
  | { readonly type: 'readIndex'; readonly id: number; readonly index: Index | null }
  /**
   * `reason` null: the command succeeded, or, for a leadership transfer, the transfer has started.
   */
  | { readonly type: 'answered'; readonly id: number; readonly reason: string | null }
  | ({ readonly type: 'status' } & ConsensusThreadStatus)
  | { readonly type: 'snapshotWanted'; readonly id: number; readonly to: NodeId }
  | { readonly type: 'snapshotCredit'; readonly id: number; readonly chunks: number }
  /** `isSent`: the peer has the snapshot and continues with the log. */
  | { readonly type: 'snapshotOver'; readonly id: number; readonly isSent: boolean }
  | { readonly type: 'receiveBegin'; readonly id: number; readonly from: NodeId }
  | { readonly type: 'receiveChunk'; readonly id: number; readonly data: Uint8Array }
  | { readonly type: 'receiveFinish'; readonly id: number }
  | { readonly type: 'receiveAbandoned'; readonly id: number }
  /**
   * The core has accepted the received snapshot: install it as the live state, then respond with
   * `restored`.
   */
  | { readonly type: 'restore'; readonly id: number }
  | {
      readonly type: 'note'
      readonly from: NodeId
      readonly topic: string
      readonly payload: Uint8Array
    }
  /**
   * A call from another controller. The main thread responds with `answerCall`, which contains the
   * same ticket.
   */
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
      readonly failure: PeerCallFailure | null
    }
  /** The streams that this member dials to a peer are ready, or have ended. */
  | { readonly type: 'link'; readonly peer: NodeId; readonly isReady: boolean }
  | ({ readonly type: 'selfRefused' } & SelfRefusal)
  /** Members for the membership cache; at most once a second. */
  | { readonly type: 'roster'; readonly roster: MembershipRecord }
  | {
      readonly type: 'log'
      readonly level: LogLevel
      readonly fields: object
      readonly message: string
    }
  /** The host cannot continue; the process must stop. */
  | { readonly type: 'fatal'; readonly reason: string }
  | { readonly type: 'stopped' }

/**
 * The cluster refuses this member.
 * - removed, other-store: a configuration committed after this member used this disk lists no such
 *   member, or lists the member with another disk.
 * - rolled-back: the disk is in an older state than one that peers have seen.
 * - not-yet-a-member: the peer knows of no admission, possibly because the peer lags.
 * - fenced: the peer belongs to a newer generation, in which this member does not exist.
 *
 * Repeated while the refusal continues, at most once a second for each peer.
 */
export interface SelfRefusal {
  readonly reason: 'removed' | 'other-store' | 'rolled-back' | 'not-yet-a-member' | 'fenced'
  /** The member that refuses; this member itself if it read its removal in its own log. */
  readonly by: NodeId
  /** Index of the configuration that is the reason for the refusal. */
  readonly index: Index
  /** Generation of the cluster, as the refusing member knows it. */
  readonly generation: number
}

/**
 * Whether this process can never be accepted again: the member was removed, or belongs to an older
 * generation.
 */
export function isPermanentlyRefused({ reason }: Pick<SelfRefusal, 'reason'>): boolean {
  return reason === 'removed' || reason === 'fenced'
}

/**
 * Ages are in ms at the time of sending, because the clocks of two threads have different origins.
 */
export interface ConsensusThreadStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  /** Time since the last contact with a leader; 0 on the leader, null if there was none. */
  readonly leaderSilentMs: number | null
  readonly commit: Index
  readonly last: Index
  /**
   * Missing tail of the log: the position of the last entry that this member acknowledged and may
   * no longer have (raft/missing-tail.ts); null if none.
   */
  readonly owed: Position | null
  /** Encoded membership.v1.Configuration in force. */
  readonly configuration: Uint8Array
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /** Sorted by id, without this member. */
  readonly peers: readonly PeerReport[]
  readonly vitals: ConsensusStats
}

/** Status that is used until the host sends its first one. */
export const INITIAL_CONSENSUS_STATUS: ConsensusThreadStatus = {
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
  vitals: ZERO_CONSENSUS_STATS,
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
  /** The newest feature level that the peer supports, from its Hello; 0 if there was none. */
  readonly featureLevel: number
  /** Match index of the peer; null on a controller that does not lead. */
  readonly matchIndex: Index | null
}

/**
 * One side of a bidirectional message link. Messages arrive in order, in a later turn of the event
 * loop.
 */
export interface ThreadChannel<In, Out> {
  /** Must be set before the first message can arrive. */
  onMessage: (message: In) => void
  /** @param transfer buffers to transfer; the sender can no longer use them. */
  post(message: Out, transfer?: readonly ArrayBuffer[]): void
  close(): void
}

export type MainThreadLink = ThreadChannel<ConsensusThreadEvent, ConsensusThreadCommand>
export type ConsensusThreadLink = ThreadChannel<ConsensusThreadCommand, ConsensusThreadEvent>

class InlineEnd<In, Out> implements ThreadChannel<In, Out> {
  onMessage: (message: In) => void = () => undefined
  peer: InlineEnd<Out, In> | null = null
  #queue: Out[] = []

  post(message: Out, transfer: readonly ArrayBuffer[] = []): void {
    if (this.peer === null) return
    // Buffers move as they do between threads: the sender's copy is empty afterwards, and a buffer
    // cannot be sent twice.
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

/** A link with both sides in one thread. */
export function createSameThreadChannel(): {
  readonly main: MainThreadLink
  readonly host: ConsensusThreadLink
} {
  const main = new InlineEnd<ConsensusThreadEvent, ConsensusThreadCommand>()
  const host = new InlineEnd<ConsensusThreadCommand, ConsensusThreadEvent>()
  main.peer = host
  host.peer = main
  return { main, host }
}

/**
 * Logger for the host. The main thread writes the host's lines, so that a process has one log.
 */
export function createLinkLogger(link: ConsensusThreadLink): Logger {
  const at = (level: LogLevel) => (fields: object, message: string) =>
    link.post({ type: 'log', level, fields, message })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

import type { PeerCaller } from './peer-channel.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index, NodeId, Position, Role, Term } from '../raft/types.ts'
import type { Logger, LogLevel } from './logger.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import { type ConsensusStats, ZERO_CONSENSUS_STATS } from '../ports/stats.ts'

// Messages between the main thread and the consensus thread. All values can be cloned, so consensus
// can run in the main thread or in a worker. Large data is packed into one Uint8Array per batch,
// whose buffer is transferred.

export type ProposalForwardRefusalCode = 'NO_LEADER' | 'NOT_LEADER' | 'OVERLOADED' | 'TOO_LARGE'

/**
 * Commands from the main thread to the consensus thread. A response has the `id` of its request.
 */
export type ConsensusThreadCommand =
  /**
   * The first command, sent when the main thread can receive events; the consensus thread responds
   * with `started`.
   */
  | { readonly type: 'start' }
  /**
   * Proposals packed by {@link packProposals}. The consensus thread either refuses each of them or
   * sends it to a leader.
   */
  | { readonly type: 'propose'; readonly proposals: Uint8Array }
  | { readonly type: 'readIndex'; readonly id: number }
  /**
   * `timeMs`: timestamp of the last entry in the state, which may be later than `applied`;
   * `setbackMs`: the number of ms by which log time was set back.
   */
  | {
      readonly type: 'progress'
      readonly applied: Index
      readonly timeMs: number
      readonly setbackMs: number
    }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'transferLeadership'; readonly id: number; readonly target: NodeId | null }
  /**
   * `configuration`: encoded membership.v1.Configuration with the target members, without outgoing
   * voters.
   */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly configuration: Uint8Array
      /**
       * Index of the configuration from which the target was derived; null accepts any current
       * configuration.
       */
      readonly basedOn: Index | null
    }
  | {
      readonly type: 'snapshotOpened'
      readonly id: number
      readonly position: Position
      readonly configuration: Uint8Array
    }
  /** One chunk of the snapshot. It uses up one of the chunks that `snapshotCredit` allowed. */
  | {
      readonly type: 'snapshotChunk'
      readonly id: number
      readonly data: Uint8Array
      readonly isLast: boolean
    }
  | { readonly type: 'snapshotFailed'; readonly id: number; readonly reason: string }
  /** The main thread has written the chunk; the consensus thread may send the next one. */
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
  /** The applied index that a peer reported. The peer's process started at `startedAtMs`. */
  | {
      readonly type: 'heardApplied'
      readonly peer: NodeId
      readonly startedAtMs: number
      readonly applied: Index
    }
  /** Sets the identity for new connections; open ones continue with the previous one. */
  | { readonly type: 'identity'; readonly identity: MeshIdentity }
  | { readonly type: 'stop' }

/** The fields of a problem that controllers send each other. */
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
   * Entries packed by src/raft/entry-codec.ts: in order, from the position at which the thread
   * started, and without gaps except for the entries that a snapshot replaces.
   */
  | { readonly type: 'committed'; readonly entries: Uint8Array }
  /** This attempt has certainly not logged the proposals with these sequence numbers. */
  | {
      readonly type: 'refused'
      readonly sequences: readonly number[]
      readonly code: ProposalForwardRefusalCode
    }
  /**
   * The leader may have lost commands that it received and that are not committed. The main thread
   * must propose them again.
   */
  | { readonly type: 'handoverLost' }
  /** Result of a read; `index` is null if no leader confirmed the read. */
  | { readonly type: 'readIndex'; readonly id: number; readonly index: Index | null }
  /**
   * Response to a request. `reason` is null if the command succeeded, or, for a leadership
   * transfer, if this controller no longer leads.
   */
  | { readonly type: 'answered'; readonly id: number; readonly reason: string | null }
  | ({ readonly type: 'status' } & ConsensusThreadStatus)
  | { readonly type: 'snapshotWanted'; readonly id: number; readonly to: NodeId }
  | { readonly type: 'snapshotCredit'; readonly id: number; readonly chunks: number }
  /**
   * The transfer of a snapshot is over. `isSent`: the peer has the snapshot and continues with the
   * log.
   */
  | { readonly type: 'snapshotOver'; readonly id: number; readonly isSent: boolean }
  | { readonly type: 'receiveBegin'; readonly id: number; readonly from: NodeId }
  | { readonly type: 'receiveChunk'; readonly id: number; readonly data: Uint8Array }
  | { readonly type: 'receiveFinish'; readonly id: number }
  | { readonly type: 'receiveAbandoned'; readonly id: number }
  /**
   * The Raft core has accepted the received snapshot. The main thread must install it as the live
   * state, then respond with `restored`.
   */
  | { readonly type: 'restore'; readonly id: number }
  | {
      readonly type: 'note'
      readonly from: NodeId
      readonly topic: string
      readonly payload: Uint8Array
    }
  /**
   * A call from another controller. The main thread responds with `answerCall` and the same ticket.
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
  /** The streams that this member dials to a peer have become ready, or have closed. */
  | { readonly type: 'link'; readonly peer: NodeId; readonly isReady: boolean }
  | ({ readonly type: 'selfRefused' } & ClusterRefusal)
  /** Members for the membership cache; sent at most once a second, and at a stop. */
  | { readonly type: 'roster'; readonly roster: MembershipRecord }
  | {
      readonly type: 'log'
      readonly level: LogLevel
      readonly fields: object
      readonly message: string
    }
  /** The consensus thread cannot continue; the process must stop. */
  | { readonly type: 'fatal'; readonly reason: string }
  | { readonly type: 'stopped' }

/**
 * The cluster refuses this member. Sent again while the refusal continues, at most once a second
 * for each peer. Reasons:
 * - removed, other-store: a configuration committed after this member used this disk lists no such
 *   member, or lists the member with another disk.
 * - rolled-back: the disk is in an older state than one that peers have seen.
 * - not-yet-a-member: the peer has no admission of this member, possibly because the peer lags.
 * - fenced: the peer belongs to a newer generation, in which this member does not exist.
 */
export interface ClusterRefusal {
  readonly reason: 'removed' | 'other-store' | 'rolled-back' | 'not-yet-a-member' | 'fenced'
  /** The member that refuses; this member itself if it read its removal in its own log. */
  readonly by: NodeId
  /** Index of the newest configuration that the refusing member knew to be committed. */
  readonly index: Index
  /** Generation of the cluster, as the refusing member knows it. */
  readonly generation: number
}

/**
 * Whether the cluster can never accept this process again, because the member was removed or
 * belongs to an older generation.
 */
export function isPermanentlyRefused({ reason }: Pick<ClusterRefusal, 'reason'>): boolean {
  return reason === 'removed' || reason === 'fenced'
}

/**
 * Status of the consensus thread. Ages are in ms at the time of sending, because the clocks of two
 * threads have different origins.
 */
export interface ConsensusThreadStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  /**
   * Time since the last contact with a leader; 0 on the leader, null if this member knows no
   * leader.
   */
  readonly leaderSilentMs: number | null
  readonly commit: Index
  readonly last: Index
  /**
   * Missing tail of the log: the position of the last entry that this member may have acknowledged
   * and no longer have (raft/missing-tail.ts); null if none.
   */
  readonly owed: Position | null
  /** Encoded current membership.v1.Configuration. */
  readonly configuration: Uint8Array
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /** The peers, sorted by id, without this member. */
  readonly peers: readonly PeerReport[]
  readonly vitals: ConsensusStats
}

/** Status that the main thread uses until the consensus thread sends its first one. */
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
 * One side of a bidirectional message link between threads. Messages arrive in order, in a later
 * turn of the event loop.
 */
export interface ThreadChannel<In, Out> {
  /**
   * Handler of received messages. The user of the link must set it before the first message can
   * arrive.
   */
  onMessage: (message: In) => void
  /**
   * Sends a message.
   * @param transfer buffers to transfer; the sender can no longer use them.
   */
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
    // As between two threads, the sender's copy of a transferred buffer is empty afterwards, and a
    // buffer cannot be sent twice.
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

/** A link whose two sides are in the same thread. */
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
 * Logger for the consensus thread. The main thread writes its lines, so that a process has one log.
 */
export function createLinkLogger(link: ConsensusThreadLink): Logger {
  const at = (level: LogLevel) => (fields: object, message: string) =>
    link.post({ type: 'log', level, fields, message })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

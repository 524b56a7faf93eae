/**
 * The events of a recorded run, one per line (ndjson). They name the actions of FlotillaRaft.tla
 * and use its terms.
 */

/** A disk under a name, as `name/n`: the n-th disk observed under that name. */
export type Server = string

export interface TraceMembers {
  readonly voters: readonly Server[]
  readonly outgoing: readonly Server[]
  readonly learners: readonly Server[]
}

/** Term, type, and a number for the content; a configuration also has its members. */
export type TraceEntry =
  | readonly [term: number, type: string, value: number]
  | readonly [term: number, type: string, value: number, members: TraceMembers]

interface Header {
  readonly mterm: number
  readonly msource: Server
  /** A node name; the receiver looks up the disk under this name. */
  readonly mdest: string
}

export type TraceMessage = Header &
  (
    | {
        readonly mtype: 'RequestVoteRequest'
        readonly mlastLogTerm: number
        readonly mlastLogIndex: number
      }
    | { readonly mtype: 'RequestVoteResponse'; readonly mvoteGranted: boolean }
    | {
        readonly mtype: 'AppendEntriesRequest'
        readonly mprevLogIndex: number
        readonly mprevLogTerm: number
        readonly mentries: readonly TraceEntry[]
        readonly mcommitIndex: number
      }
    | {
        readonly mtype: 'AppendEntriesResponse'
        readonly msuccess: boolean
        readonly mmatchIndex: number
      }
    | { readonly mtype: 'Heartbeat'; readonly mcommitIndex: number }
    /** Only the term of this message matters: a refused pre-vote, or the answer to a heartbeat. */
    | { readonly mtype: 'Answer' }
  )

/** The values that a server reports at the end of a step. */
export interface TraceAfter {
  readonly term: number
  readonly votedFor: string
  readonly state: 'Follower' | 'Candidate' | 'Leader'
  readonly lastIndex: number
  readonly lastTerm: number
  readonly commit: number
  /** The configuration, if it differs from the one reported before. */
  readonly config?: TraceMembers
  /** On a leader: the known log position of each peer. */
  readonly match?: readonly (readonly [Server, number])[]
}

export interface HeardAction {
  readonly action:
    | 'HandleRequestVoteRequest'
    | 'HandleRequestVoteResponse'
    | 'HandleAppendEntriesRequest'
    | 'HandleAppendEntriesResponse'
    | 'HandleHeartbeat'
  readonly message: TraceMessage
  /** Whether the message does not arrive again after this event. */
  readonly isLast: boolean
}

export interface AppendedAction {
  readonly action: 'ClientRequest' | 'ChangeConfiguration' | 'LeaveJoint'
  readonly entries: readonly TraceEntry[]
}

export type TraceAction =
  | {
      readonly action: 'Join'
      readonly term: number
      readonly votedFor: string
      /** The kept log: `entries`, which follow this number of committed entries. */
      readonly base: number
      readonly entries: readonly TraceEntry[]
      readonly applied: number
      readonly commit: number
      readonly told: TraceMembers
    }
  | {
      readonly action: 'Restart'
      readonly term: number
      readonly votedFor: string
      readonly lastIndex: number
      readonly lastTerm: number
      readonly applied: number
      readonly commit: number
    }
  | { readonly action: 'UpdateTerm'; readonly message: TraceMessage }
  | { readonly action: 'UpdateTermBySnapshot'; readonly term: number }
  | { readonly action: 'Timeout' | 'StepDown' | 'BecomeLeader' | 'Ready' }
  | HeardAction
  | AppendedAction
  | { readonly action: 'AdvanceCommitIndex'; readonly index: number }
  | {
      readonly action: 'InstallSnapshot'
      readonly index: number
      readonly term: number
      readonly snapshotTerm: number
    }
  | {
      readonly action: 'Send'
      readonly message: TraceMessage
      /** The message is sent once this number of writes since the last start is on the disk. */
      readonly token: number
      /** The message does not arrive, or changes nothing when it arrives. */
      readonly isLost: boolean
    }
  | {
      readonly action: 'Write'
      /** 0: term and vote stay unchanged. */
      readonly term: number
      readonly votedFor: string
      readonly first: number
      readonly entries: readonly TraceEntry[]
    }
  | { readonly action: 'Reset'; readonly index: number }
  | { readonly action: 'Persisted'; readonly token: number }
  /** The state changed in a way that no action explains. */
  | { readonly action: 'Unexplained'; readonly input: string }

export type TraceEvent = TraceAction & { readonly server: Server; readonly after?: TraceAfter }

export interface Trace {
  /** Each disk, with its name. */
  readonly servers: readonly (readonly [Server, string])[]
  /** The log with which the cluster was formed. */
  readonly formed: readonly TraceEntry[]
  readonly events: readonly TraceEvent[]
}

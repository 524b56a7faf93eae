import type { TokenChallenge } from './auth/external-jwt/challenge.ts'
import type { VerifiedToken } from './auth/external-jwt/token-judge.ts'
import type { PeerChain } from './transport/peer.ts'
import { createHash } from 'node:crypto'
import type { PendingFactor } from '../fsm/apply/authentication.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { type TraceContext, traceOf } from '../lib/trace-context.ts'
import type { Actor } from '../ports/actor.ts'
import type { ApiName, Operation } from './operation.ts'
import type { Precondition } from './records/revisions.ts'

/** Who calls, proven by its session. Records as they stood when the request was judged. */
export interface Caller {
  readonly session: EntityRecord
  readonly identity: EntityRecord
  /** An administrator, in a full session. */
  readonly isAdmin: boolean
  /** Second factors that its session lacks; none: it is a full session. */
  readonly pendingFactors: readonly PendingFactor[]
  /**
   * Version of the cluster key that its token is signed by; absent where the session was opened by
   * this very call.
   */
  readonly keyVersion?: number
  /** Of an identity provider, which its request came with and its session asks for. */
  readonly token?: VerifiedToken
  /**
   * Of whoever asks at the admin socket without a session: as the log is to have it. Its records
   * are nobody's.
   */
  readonly system?: Actor
}

export type RequestQuery = Readonly<Record<string, string | readonly string[] | undefined>>

/** The reason given in WWW-Authenticate of a 401 (RFC 6750 wording, as the API family uses it). */
export type Challenge = 'missing' | 'invalid' | 'expired'

/** One request on its way: what was judged of it, and what its answer will reflect. */
export class RequestContext {
  readonly operation: Operation | null
  readonly api: ApiName
  readonly method: string
  /** Canonical, without the query. */
  readonly path: string
  /** Of the peer, without its port. */
  readonly address: string
  /** Monotonic ms. */
  readonly startedAtMs: number
  /** The Accept header; '' when there was none. */
  readonly accept: string
  /** Told in log lines about it, and never part of what is written. */
  readonly trace: TraceContext
  /**
   * Gives back the room that a large body was read into; to be called once nothing holds the body
   * any more.
   */
  releaseBody: () => void = () => undefined
  /**
   * Called once the answer has left, or its client has: what it holds of the memory is free again.
   */
  onAnswerGone: (() => void) | null = null
  params: Readonly<Record<string, string>> = {}
  query: RequestQuery = {}
  /** Those that the operation reads. */
  headers: Readonly<Record<string, string | undefined>> = {}
  body: unknown = undefined
  /** The body is of a type whose text is taken as it is; else it is JSON, whatever that holds. */
  isTextBody = false
  /** The body as it was sent; kept only for requests with an id. */
  bodyText = ''
  netRequestId: { readonly text: string; readonly bytes: Uint8Array } | null = null
  /** The least index that the answer must reflect. */
  minIndex = 0
  isLinearizable = false
  /** If-Match. */
  precondition: Precondition | null = null
  /** The header as it was sent. */
  ifNoneMatch: string | null = null
  caller: Caller | null = null
  challenge: Challenge | TokenChallenge | null = null
  /** Identities share room and time, and so do sources of what has not proven who it is. */
  sharer = ''
  /** Log index that the answer reflects; 0: not read yet. */
  index = 0
  /** False where the request id is not kept: asking again would make a second one. */
  isRepeatable = true
  /**
   * Answered before it was proposed: its caller was told that it took too long, so it must not take
   * effect any more.
   */
  isAbandoned = false
  /** Its operation has begun and not ended. */
  isAtWork = false
  /** From here on the fate of the write is the cluster's. */
  hasProposed = false
  /** The certificates that the client of its connection showed; null: none. */
  peerChain: () => PeerChain | null = () => null
  /** Tokens in its `Authorization: Bearer` headers, as many as are looked at. */
  bearers: () => readonly string[] = () => []
  /** Whether its connection has closed. */
  isDisconnected: () => boolean = () => false

  constructor(input: {
    operation: Operation | null
    api: ApiName
    method: string
    path: string
    address: string
    startedAtMs: number
    accept: string
    /** The traceparent header as it came. */
    traceparent?: unknown
  }) {
    this.operation = input.operation
    this.api = input.api
    this.method = input.method
    this.path = input.path
    this.address = input.address
    this.startedAtMs = input.startedAtMs
    this.accept = input.accept
    this.trace = traceOf(input.traceparent)
  }

  /** Nobody waits for its answer any more. */
  get isGone(): boolean {
    return this.isAbandoned || this.isDisconnected()
  }

  /** SHA-256 over method, path and body: what makes two requests under one id the same. */
  bodyHash(): Uint8Array {
    const hash = createHash('sha256').update(`${this.method} ${this.path}\n`)
    return Uint8Array.from(hash.update(this.bodyText).digest())
  }

  param(name: string): string {
    return this.params[name] ?? ''
  }

  /** The first value of a query parameter; an empty one counts as none. */
  first(name: string): string | undefined {
    const value = this.query[name]
    const first = typeof value === 'string' ? value : value?.[0]
    return first === '' ? undefined : first
  }

  all(name: string): readonly string[] {
    const value = this.query[name]
    if (value === undefined) return []
    return typeof value === 'string' ? [value] : value
  }
}

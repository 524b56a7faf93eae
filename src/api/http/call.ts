import { createHash } from 'node:crypto'
import { AssertionError } from '../../lib/assert.ts'
import { type TraceContext, parseTraceparent } from '../../lib/trace-context.ts'
import type { Actor } from '../../ports/actor.ts'
import type { Idempotency, WriteOrigin, WriteRequest } from '../../ports/writer.ts'
import type { TokenChallenge } from '../../auth/tokens/challenge.ts'
import type { ApiName } from '../../auth/principal/permissions.ts'
import type { CallerCredentials } from '../../auth/principal/credentials.ts'
import { principalActor, type Caller, principalOrigin } from '../../auth/principal/principal.ts'
import type { Challenge } from '../../auth/sessions/session-guard.ts'
import type { Reply } from './answers/envelope.ts'
import type { OperationTraits } from './operation-traits.ts'
import type { Precondition } from './answers/etag.ts'

export type RequestQuery = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Facts of a request that do not depend on its transport: for its log lines, and for reads and
 * retries.
 */
interface RequestMetadata {
  /** Part of log lines about the request, never of a record. */
  readonly trace: TraceContext
  /** The request came with a trace. */
  readonly isTraceShown: boolean
  /** The least index that the answer must reflect. */
  minIndex: number
  isLinearizable: boolean
  /** `net-request-id`. */
  requestId: Uint8Array | null
  /** False where the request id is not kept: asking again would make a second one. */
  isRepeatable: boolean
}

const isConnected = (): boolean => false
const nothing = Object.freeze({})

/** State of one request: its credentials, input, judgment, and the metadata of its answer. */
export class RequestContext<O extends OperationTraits = OperationTraits> {
  readonly operation: O | null
  readonly api: ApiName
  readonly method: string
  readonly changesNothing: boolean
  /** Canonical, without the query. */
  readonly path: string
  readonly credentials: CallerCredentials
  readonly metadata: RequestMetadata
  /** Monotonic ms. */
  readonly startedAtMs: number
  /** The Accept header; '' when there was none. */
  readonly accept: string
  /**
   * Releases the capacity of a large body; call it when nothing refers to the body. Null: none was
   * taken.
   */
  releaseBody: (() => void) | null = null
  /** Called when the answer has been sent or the client has left: its memory is free again. */
  onAnswerGone: (() => void) | null = null
  params: Readonly<Record<string, string>> = nothing
  query: RequestQuery = nothing
  /** Headers that the operation reads. */
  headers: Readonly<Record<string, string | undefined>> = nothing
  /** The operation gets the body as text; otherwise the body is parsed as JSON. */
  isTextBody = false
  /** The body as it was sent; kept only for requests with an id. */
  bodyText = ''
  /** If-Match. */
  precondition: Precondition | null = null
  /** The header as it was sent. */
  ifNoneMatch: string | null = null
  caller: Caller | null = null
  challenge: Challenge | TokenChallenge | null = null
  /** Page that a browser gets instead of the error. */
  refusalPage: Reply | null = null
  /**
   * Whether the request has waited for its caller's share of the processor before it was checked.
   */
  hasWaited = false
  /**
   * Sharer of room and processor time: an identity, or the source address of an unauthenticated
   * caller.
   */
  sharer = ''
  /** Log index that the answer reflects; 0: not read yet. */
  index = 0
  /**
   * The caller already received a timeout before the write was proposed, so the write must not take
   * effect.
   */
  isAbandoned = false
  /** Its operation has begun and not ended. */
  isAtWork = false
  /** The write that was handed over: from there on its fate is the cluster's. */
  proposed: Idempotency | null = null
  /** Whether its connection has closed. */
  isDisconnected: () => boolean = isConnected

  constructor(input: {
    operation: O | null
    api: ApiName
    method: string
    path: string
    credentials: CallerCredentials
    startedAtMs: number
    accept: string
    /** The traceparent header as it came. */
    traceparent?: unknown
  }) {
    this.operation = input.operation
    this.api = input.api
    this.method = input.method
    this.changesNothing = input.operation?.changesNothing === true
    this.path = input.path
    this.credentials = input.credentials
    this.startedAtMs = input.startedAtMs
    this.accept = input.accept
    const { traceparent } = input
    let trace: TraceContext | null = null
    this.metadata = {
      // Created at first use: most requests are never logged and need no trace ids.
      get trace(): TraceContext {
        return (trace ??= parseTraceparent(traceparent))
      },
      isTraceShown: traceparent !== undefined,
      minIndex: 0,
      isLinearizable: false,
      requestId: null,
      isRepeatable: true,
    }
  }

  /** Whether the client has disconnected. */
  get isGone(): boolean {
    return this.isAbandoned || this.isDisconnected()
  }

  /**
   * SHA-256 over method, path and body. Two requests with the same id and hash are the same
   * request.
   */
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

/**
 * The origin of the writes of a request: its caller, in its session.
 * @throws {AssertionError} without a caller: such writes have another actor.
 */
export function requestOrigin(call: RequestContext, request = toWriteRequest(call)): WriteOrigin {
  const { idempotency } = request
  return principalOrigin(request, callActor(call), idempotency)
}

/** The actor of the request's caller. */
export function callActor({ caller }: RequestContext): Actor {
  if (caller === null)
    throw new AssertionError('a write of a request has a caller, with what it was admitted by')
  return principalActor(caller)
}

/** The request behind a write; the credentials of the caller determine its actor. */
export function toWriteRequest(call: RequestContext): WriteRequest {
  const { metadata } = call
  return {
    trace: metadata.trace,
    // Evaluated at the write, because a body may contain secrets that no request id may be stored
    // with.
    get idempotency(): Idempotency {
      if (!metadata.isRepeatable) return { case: 'notKept' }
      if (metadata.requestId === null) return { case: 'none' }
      return { case: 'id', id: metadata.requestId, bodyHash: () => call.bodyHash() }
    },
    isAbandoned: () => call.isAbandoned,
    onProposed: (idempotency) => {
      call.proposed = idempotency
    },
    onOutcome: (index) => {
      call.index = Math.max(call.index, index)
    },
  }
}

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
 * Data of a request that does not depend on its transport: for its log lines, and for reads and
 * retries.
 */
interface RequestMetadata {
  /** Trace of the request, for log lines. It is never part of a record. */
  readonly trace: TraceContext
  /** True: the request contained a trace. */
  readonly isTraceShown: boolean
  /** Minimum index that the answer must reflect. */
  minIndex: number
  isLinearizable: boolean
  /** `net-request-id`. */
  requestId: Uint8Array | null
  /** False: the request id is not stored, so a repeated request takes effect again. */
  isRepeatable: boolean
}

const isConnected = (): boolean => false
const nothing = Object.freeze({})

/**
 * State of one request: its credentials, input, the decision about it, and the metadata of its
 * answer.
 */
export class RequestContext<O extends OperationTraits = OperationTraits> {
  readonly operation: O | null
  readonly api: ApiName
  readonly method: string
  readonly changesNothing: boolean
  /** Normalized, without the query. */
  readonly path: string
  readonly credentials: CallerCredentials
  readonly metadata: RequestMetadata
  /** Monotonic ms. */
  readonly startedAtMs: number
  /** The Accept header; '' if absent. */
  readonly accept: string
  /**
   * Releases the capacity that a large body occupies; call it when nothing refers to the body any
   * more. Null: the body occupies none.
   */
  releaseBody: (() => void) | null = null
  /**
   * Called when the answer has been sent or the client has disconnected, so that its memory is free
   * again.
   */
  onAnswerGone: (() => void) | null = null
  params: Readonly<Record<string, string>> = nothing
  query: RequestQuery = nothing
  /** Headers that the operation reads. */
  headers: Readonly<Record<string, string | undefined>> = nothing
  /** True: the operation receives the body as text; otherwise the body is parsed as JSON. */
  isTextBody = false
  /** The body as it was received; kept only for requests with an id. */
  bodyText = ''
  /** The If-Match header, parsed. */
  precondition: Precondition | null = null
  /** The If-None-Match header as it was received. */
  ifNoneMatch: string | null = null
  caller: Caller | null = null
  challenge: Challenge | TokenChallenge | null = null
  /** Page that a browser receives in place of the error. */
  refusalPage: Reply | null = null
  /**
   * Whether the request has waited for its caller's share of the processor before it was checked.
   */
  hasWaited = false
  /**
   * Name for sharing memory and processor time: an identity, or the source address of an
   * unauthenticated caller.
   */
  sharer = ''
  /** Log index that the answer reflects; 0: not read yet. */
  index = 0
  /**
   * True: the caller received a timeout before the write was proposed, so the write must not take
   * effect.
   */
  isAbandoned = false
  /** True while its operation runs. */
  isAtWork = false
  /** The write that was proposed. From then on its outcome depends on the cluster. */
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
    /** The traceparent header as it was received. */
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
      // Created at its first use, because most requests are never logged.
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
   * SHA-256 over method, path and body. Two requests with the same id and hash count as the same
   * request.
   */
  bodyHash(): Uint8Array {
    const hash = createHash('sha256').update(`${this.method} ${this.path}\n`)
    return Uint8Array.from(hash.update(this.bodyText).digest())
  }

  param(name: string): string {
    return this.params[name] ?? ''
  }

  /** The first value of a query parameter; an empty one counts as missing. */
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
 * @throws {AssertionError} without a caller, because such writes have another actor.
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

/** The request behind a write. The credentials of the caller determine its actor. */
export function toWriteRequest(call: RequestContext): WriteRequest {
  const { metadata } = call
  return {
    trace: metadata.trace,
    // Evaluated at the write: with a secret in the body, no request id may be stored.
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

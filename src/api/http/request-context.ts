import { createHash } from 'node:crypto'
import { AssertionError } from '../../lib/assert.ts'
import { type TraceContext, parseTraceparent } from '../../lib/trace-context.ts'
import type { Actor } from '../../ports/actor.ts'
import type { Idempotency, WriteOrigin, WriteRequest } from '../../ports/writer.ts'
import type { ExternalJwtChallenge } from '../../auth/tokens/external-jwt-challenge.ts'
import type { ApiName } from '../../auth/principal/permissions.ts'
import type { CallerCredentials } from '../../auth/principal/credentials.ts'
import {
  actorForPrincipal,
  type Caller,
  writeOriginForActor,
} from '../../auth/principal/principal.ts'
import type { ChallengeReason } from '../../auth/sessions/request-authenticator.ts'
import type { Reply } from './responses/envelope.ts'
import type { OperationTraits } from './operation-traits.ts'
import type { IfMatchPrecondition } from './responses/etag.ts'

export type RequestQuery = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Data of a request that does not depend on the transport; used for log lines, reads and retries.
 */
interface RequestMetadata {
  /** Trace of the request, for log lines only; no record contains the trace. */
  readonly trace: TraceContext
  /** True if the request has the header `traceparent`, even with an invalid value. */
  readonly isTraceShown: boolean
  /** Minimum log index that the response must reflect. */
  minIndex: number
  isLinearizable: boolean
  /** ID from the header `net-request-id`; null without it. */
  requestId: Uint8Array | null
  /**
   * False: the outcome for the request id is not stored, so a repeated request is executed again.
   */
  isRepeatable: boolean
}

const isConnected = (): boolean => false
const nothing = Object.freeze({})

/**
 * State of one request: credentials, input, result of the admission, and metadata of the response.
 */
export class RequestContext<O extends OperationTraits = OperationTraits> {
  readonly operation: O | null
  readonly api: ApiName
  readonly method: string
  readonly changesNothing: boolean
  /** Normalized path, without the query. */
  readonly path: string
  readonly credentials: CallerCredentials
  readonly metadata: RequestMetadata
  /** Start of the request, monotonic ms. */
  readonly startedAtMs: number
  /** The Accept header; '' if absent. */
  readonly accept: string
  /**
   * Frees the memory reserved for a large body; call it when no code refers to the body any more.
   * Null if no memory is reserved.
   */
  releaseBody: (() => void) | null = null
  /**
   * Called when the response has been sent or the client has disconnected, to free what the
   * response occupies, such as a slot for long lists.
   */
  onAnswerGone: (() => void) | null = null
  params: Readonly<Record<string, string>> = nothing
  query: RequestQuery = nothing
  /** Values of the headers that the operation declares. */
  headers: Readonly<Record<string, string | undefined>> = nothing
  /** True: the operation receives the body as text; otherwise the body is parsed as JSON. */
  isTextBody = false
  /** The body as it was received; stored only for requests with a request id. */
  bodyText = ''
  /** The If-Match header, parsed. */
  precondition: IfMatchPrecondition | null = null
  /** The If-None-Match header as it was received. */
  ifNoneMatch: string | null = null
  caller: Caller | null = null
  /** True if a monitoring certificate admits the request although the state is unusable. */
  isMonitorWithoutState = false
  challenge: ChallengeReason | ExternalJwtChallenge | null = null
  /** HTML page that a browser receives instead of the error response; null if there is none. */
  refusalPage: Reply | null = null
  /**
   * Whether the request already waited for its caller's share of processor time, before the
   * admission check.
   */
  hasWaited = false
  /**
   * Time that the request waited before its body was read, for processor time and for its
   * admission, ms.
   */
  waitedMs = 0
  /** Deadline of the result, monotonic ms; set when the whole request has arrived. */
  deadlineMs = Infinity
  /**
   * Key for fair sharing of memory and processor time: an identity, or the source (an IPv4 address,
   * a /64 of IPv6) of an unauthenticated caller.
   */
  sharer = ''
  /** Log index that the response reflects; 0 if the state was not read yet. */
  index = 0
  /**
   * True if the caller received a timeout before its write was proposed. The write must then not be
   * proposed.
   */
  isAbandoned = false
  /** True while the operation of the request runs. */
  isAtWork = false
  /**
   * Whether and how the client can safely repeat the proposed write; null until a write is
   * proposed, and again if the proposal fails. Unless it is null, a timeout means that the outcome
   * is unknown.
   */
  proposed: Idempotency | null = null
  /** Whether the connection of the request has closed. */
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
      // Creates the trace on first use, because most requests are never logged.
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

  /**
   * Whether the client no longer waits: it has disconnected, or received a timeout before a write
   * was proposed.
   */
  get isGone(): boolean {
    return this.isAbandoned || this.isDisconnected()
  }

  /**
   * SHA-256 over method, path and body. A request of the same caller with the same request id and
   * the same hash counts as a repetition of an earlier request.
   */
  bodyHash(): Uint8Array {
    const hash = createHash('sha256').update(`${this.method} ${this.path}\n`)
    return Uint8Array.from(hash.update(this.bodyText).digest())
  }

  param(name: string): string {
    return this.params[name] ?? ''
  }

  /** The first value of a query parameter; undefined if it is empty or missing. */
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
 * Origin for the writes of a request: the caller as the actor, the trace and the request ID.
 * @throws {AssertionError} without a caller: a request without a caller, such as an enrollment,
 * writes as another actor.
 */
export function requestOrigin(call: RequestContext, request = toWriteRequest(call)): WriteOrigin {
  const { idempotency } = request
  return writeOriginForActor(request, requestActor(call), idempotency)
}

/** The caller of the request as the actor of writes. */
export function requestActor({ caller }: RequestContext): Actor {
  if (caller === null)
    throw new AssertionError('a write of a request has a caller, with what it was admitted by')
  return actorForPrincipal(caller)
}

/**
 * The request data that a write needs. The actor, which is derived from the caller's credentials,
 * is added later.
 */
export function toWriteRequest(call: RequestContext): WriteRequest {
  const { metadata } = call
  return {
    trace: metadata.trace,
    // A getter, because the operation may find a secret in the body before it proposes the write;
    // then the request id must not be stored.
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

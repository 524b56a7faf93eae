import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import { addressShareKey } from '../../lib/bounds/source-network.ts'
import { missingPermissionText } from '../../auth/principal/permissions.ts'
import type { ReplyWriter } from './responses/reply-writer.ts'
import type {
  RequestAdmission,
  RequestAuthenticator,
} from '../../auth/sessions/request-authenticator.ts'
import {
  admitHostUser,
  isAdminSocketOnly,
  refuseAdminSocketOnly,
} from '../../auth/principal/host-user.ts'
import { RequestContext, type RequestQuery } from './request-context.ts'
import { type LinearizableReads, parseMinIndex, parseNetRequestId } from './linearizable-reads.ts'
import { corsPreflightHeaders } from './responses/cors.ts'
import type { Reply } from './responses/envelope.ts'
import type { Operation, OperationCall } from './operation.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import { validateQueryParameters } from './query-parameters.ts'
import { parseIfMatch } from '../records/conditional-requests.ts'
import type { RequestBodyValidator } from '../schemas/request-body-validator.ts'
import { outcomeUnknownProblem } from './proposal-writer.ts'
import {
  checkRequestHead,
  requestCredentials,
  isMediaTypeAccepted,
  type AdminSocketCallerFinder,
} from './transport/request-head.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiLimits } from '../limits.ts'
import type { ProcessorShare } from '../../lib/bounds/processor-share.ts'
import type { ConnectionCallers } from './transport/connection-callers.ts'

interface PipelineDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly processor: ProcessorShare
  readonly callers: ConnectionCallers
  readonly refusal: () => ProblemCode | null
  readonly gate: RequestAuthenticator
  readonly validator: RequestBodyValidator
}

const JSON_ONLY = ['application/json'] as const
type Check = (value: unknown) => void

/**
 * Checks every request except OPTIONS in this order: head, size, route, session, permission,
 * accepted types, query, body and schema, and the log index that the response must reflect. Then
 * runs the operation, with limits on its time and on the number of waiting requests.
 */
export class RequestPipeline {
  readonly #deps: PipelineDeps
  readonly #answerer: ReplyWriter
  readonly #waiting: FairShare
  readonly #socketOnly = new Set<Operation>()
  /**
   * Finds the operating system user who sent a request; null on every listener except the admin
   * socket.
   */
  readonly #socketCaller: AdminSocketCallerFinder | null

  constructor(
    deps: PipelineDeps,
    answerer: ReplyWriter,
    socketCaller: AdminSocketCallerFinder | null = null,
  ) {
    this.#socketCaller = socketCaller
    this.#deps = deps
    this.#answerer = answerer
    this.#waiting = new FairShare(deps.limits.waitingRequestsMax)
  }

  /**
   * First hook: checks the head, the declared size, the session and the headers. If no route
   * matches, the not-found handler sends the response.
   */
  readonly judge = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: HookHandlerDoneFunction,
  ): void => {
    const call = this.callOf(request)
    request.call = call
    try {
      if (request.raw.method === 'OPTIONS') {
        this.#answerPreflight(request, reply, call)
        return
      }
      const { operation } = call
      checkRequestHead(request)
      this.#checkSize(request, operation)
      if (operation === null) {
        done()
        return
      }
      const pending = this.#admit(call, operation)
      const proceed = (): void => {
        this.#readHeaders(request, call, operation)
        call.waitedMs = this.#deps.clock.monotonicMs() - call.startedAtMs
        done()
      }
      if (pending === null) {
        proceed()
        return
      }
      pending.then(proceed).catch((error: unknown) => {
        this.#fail(reply, call, error)
      })
    } catch (error) {
      this.#answerer.fail(reply, call, error)
    }
  }

  /** Creates the handler that runs the operation, as the last step of the pipeline. */
  handlerOf(operation: Operation): (request: FastifyRequest, reply: FastifyReply) => void {
    if (isAdminSocketOnly(operation)) this.#socketOnly.add(operation)
    const { body } = operation
    const check = body === undefined ? null : this.#deps.validator.checkOf(body.schema.schema)
    return (request, reply) => {
      const call = request.call ?? this.callOf(request)
      call.isAtWork = true
      call.sharer =
        call.caller === null ? addressShareKey(call.credentials.address) : call.caller.identity.id
      this.#deps.callers.know(request.raw, call.sharer)
      // The time in which the body arrived does not count.
      const beganMs = this.#deps.clock.monotonicMs() - call.waitedMs
      call.deadlineMs = beganMs + (operation.answerMsMax ?? this.#deps.limits.handlerTimeoutMs)
      let { hasWaited } = call
      try {
        hasWaited = this.#deps.processor.run(call.sharer, () => {
          if (!hasWaited || this.#mayGoOn(request, reply, call, operation)) {
            this.#work(request, reply, call, operation, check)
          }
        })
      } catch (error) {
        this.#answerer.fail(reply, call, error)
        call.releaseBody?.()
      }
    }
  }

  /**
   * Whether a request may continue after a wait; the caller may have disconnected or lost its
   * session, or the time limit may have passed.
   */
  #mayGoOn(
    request: FastifyRequest,
    reply: FastifyReply,
    call: OperationCall,
    operation: Operation,
  ): boolean {
    try {
      if (!request.raw.socket.destroyed) {
        if (this.#deps.clock.monotonicMs() > call.deadlineMs) throw new Problem('TIMEOUT')
        this.#admitAgain(call, operation)
        return true
      }
    } catch (error) {
      this.#answerer.fail(reply, call, error)
    }
    call.releaseBody?.()
    return false
  }

  #work(
    request: FastifyRequest,
    reply: FastifyReply,
    call: OperationCall,
    operation: Operation,
    check: Check | null,
  ): void {
    try {
      const body = this.#takeInput(request, call, operation, check)
      // Checks the limit on waiting requests before a write is proposed, because the client must
      // receive the outcome of a proposed write.
      if (operation.method !== 'GET') this.#checkCrowd(call)
      // Handles a request immediately, except for the few requests that must wait for a log index.
      const { minIndex, isLinearizable } = call.metadata
      if (isLinearizable || (minIndex > 0 && minIndex > this.#deps.state.appliedIndex)) {
        this.#wait(reply, call, this.#handleLater(call, operation, body))
        return
      }
      const result = this.#handle(call, operation, body)
      if (result instanceof Promise) {
        this.#wait(reply, call, result)
        return
      }
      this.#answerer.succeed(reply, call, result)
    } catch (error) {
      this.#answerer.fail(reply, call, error)
    }
    call.releaseBody?.()
  }

  #checkCrowd(call: OperationCall): void {
    if (!this.#waiting.hasRoomFor(call.sharer)) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  /**
   * The context of a request, which the first hook creates and stores in the request. For a request
   * that failed before that hook, each call creates a new context.
   */
  callOf(request: FastifyRequest): OperationCall {
    if (request.call !== null && request.call !== undefined) return request.call
    const { config } = request.routeOptions
    const { raw } = request
    const url = raw.url ?? '/'
    const end = url.indexOf('?')
    const waitsSinceMs = this.#deps.callers.takeWait(raw)
    const call = new RequestContext<Operation>({
      operation: config.operation ?? null,
      api: config.api ?? 'host',
      method: raw.method ?? '',
      path: end === -1 ? url : url.slice(0, end),
      credentials: requestCredentials(raw, this.#socketCaller),
      startedAtMs: waitsSinceMs ?? this.#deps.clock.monotonicMs(),
      accept: request.headers.accept ?? '',
      traceparent: request.headers['traceparent'],
    })
    call.isDisconnected = () => raw.socket.destroyed
    call.hasWaited = waitsSinceMs !== null
    return call
  }

  #answerPreflight(request: FastifyRequest, reply: FastifyReply, call: OperationCall): void {
    const { headers } = request
    const extra = corsPreflightHeaders({
      method: headers['access-control-request-method'],
      headers: headers['access-control-request-headers'],
    })
    this.#answerer.plain(reply, call, 200, extra)
  }

  /**
   * Runs before the body is read, so that no memory is needed for a body whose declared length is
   * too large.
   */
  #checkSize(request: FastifyRequest, operation: Operation | null): void {
    const declared = request.headers['content-length']
    if (declared === undefined) return
    const { bodyBytesMax } = this.#deps.limits
    if (Number(declared) > Math.min(bodyBytesMax, operation?.bodyBytesMax ?? bodyBytesMax)) {
      throw new Problem('REQUEST_ENTITY_TOO_LARGE')
    }
  }

  #admit(call: OperationCall, operation: Operation): Promise<void> | null {
    const { credentials, api, method } = call
    const { permission, elevatedPermission, isForMonitors, needsNoState, changesNothing } =
      operation
    const isPublic = permission === 'public'
    const asked = isPublic ? elevatedPermission : permission
    if (asked !== undefined && credentials.hostUser !== null) {
      call.caller = admitHostUser(credentials, permission)
    }
    if (isForMonitors === true && needsNoState === true && this.#deps.refusal() !== null) {
      // @guard metrics-by-certificate--quarantine
      call.isMonitorWithoutState = this.#deps.gate.isMonitor(credentials)
    }
    this.#checkState(call)
    if (asked === undefined || call.caller !== null || call.isMonitorWithoutState) return null
    // Identifies no caller from the state of a quarantined controller: the state may be wrong, and
    // callers could see more than they may.
    if (this.#deps.refusal() === 'NODE_QUARANTINED') return null
    if (isPublic) return this.#admitForMore(call, asked)
    const wanted = { api, method, permission, isForMonitors, changesNothing }
    const admission = this.#deps.gate.admit(credentials, wanted)
    if (admission instanceof Promise)
      return admission.then((found) => this.#take(call, found, operation))
    this.#take(call, admission, operation)
    return null
  }

  /** @throws {Problem} UNAUTHORIZED for a request that is not admitted; ADMIN_SOCKET_ONLY. */
  #take(call: OperationCall, admission: RequestAdmission, operation: Operation): void {
    const { principal } = admission
    // If the session is now invalid, keeps the caller from an earlier check.
    if (principal?.kind === 'session') call.caller = principal
    if (!admission.isAdmitted) {
      call.challenge = admission.challenge
      const detail = principal?.kind === 'session' ? missingPermissionText(principal) : null
      throw new Problem('UNAUTHORIZED', detail === null ? {} : { detail })
    }
    if (this.#socketOnly.has(operation)) refuseAdminSocketOnly(operation)
  }

  /** Checks the admission again after a wait, because the session may have ended. */
  #admitAgain(call: OperationCall, operation: Operation): void {
    const { caller, credentials } = call
    if (caller?.kind !== 'session') return
    const { gate } = this.#deps
    this.#take(call, gate.admitAgain(credentials, caller, call, operation.permission), operation)
  }

  /**
   * Checks the additional permission of a public operation. Without this permission, the caller
   * gets the public response.
   */
  #admitForMore(call: OperationCall, permission: SessionPermission): Promise<void> | null {
    const { credentials, api, method } = call
    if (credentials.sessionToken === undefined) return null
    const enter = (admission: RequestAdmission): void => {
      const { principal } = admission
      if (admission.isAdmitted && principal?.kind === 'session') call.caller = principal
    }
    try {
      const admission = this.#deps.gate.admit(credentials, { api, method, permission })
      if (admission instanceof Promise) return admission.then(enter).catch(() => undefined)
      enter(admission)
    } catch {
      // Ignores the error, because every caller may get the public response.
    }
    return null
  }

  #readHeaders(request: FastifyRequest, call: OperationCall, operation: Operation): void {
    const { headers } = request
    const { types = JSON_ONLY, ignoresAccept = false } = operation.response
    if (!ignoresAccept && !isMediaTypeAccepted(headers.accept, types)) {
      throw new Problem('NOT_ACCEPTABLE', {
        fault: { field: 'Accept', reason: `must allow one of ${types.join(', ')}` },
      })
    }
    const minIndex = headers['net-min-index']
    if (typeof minIndex === 'string') {
      call.metadata.minIndex = parseMinIndex(minIndex, this.#deps.cluster.generation)
    }
    const requestId = headers['net-request-id']
    if (typeof requestId === 'string') {
      call.metadata.requestId = parseNetRequestId(requestId)
    }
    const ifMatch = headers['if-match']
    if (ifMatch !== undefined && operation.method !== 'GET') {
      // Refuses If-Match: if the header were ignored, a write that should be conditional would take
      // effect unconditionally.
      if (operation.hasEtag !== true) {
        throw fieldProblem('If-Match', 'this operation supports no If-Match')
      }
      call.precondition = parseIfMatch(ifMatch)
    }
    call.ifNoneMatch = headers['if-none-match'] ?? null
    if (operation.headers === undefined) return
    call.headers = Object.fromEntries(
      operation.headers.map(({ name }) => {
        const value = headers[name]
        return [name, typeof value === 'string' ? value : undefined]
      }),
    )
  }

  /**
   * @returns the validated body, or a text body that the operation validates itself; undefined for
   * an operation without a body.
   */
  #takeInput(
    request: FastifyRequest,
    call: OperationCall,
    operation: Operation,
    check: Check | null,
  ): unknown {
    call.params = request.params as Readonly<Record<string, string>>
    call.query = request.query as RequestQuery
    validateQueryParameters(call, operation.query ?? [], this.#deps.limits)
    const consistency = call.first('consistency')
    if (consistency === 'linearizable') call.metadata.isLinearizable = true
    else if (consistency !== undefined && consistency !== 'local') {
      throw fieldProblem('consistency', 'should be one of [local linearizable]', consistency)
    }
    if (check === null) return undefined
    const { body } = request
    if (call.isTextBody) return body
    // `null` counts as a missing body, because the JVM SDK sends `null` when it logs in with a
    // certificate.
    if (body !== undefined && body !== null) check(body)
    else if (operation.body?.isRequired === true) {
      throw fieldProblem('body', 'body in body is required')
    }
    return body ?? {}
  }

  /**
   * @throws {Problem} while this controller must not serve requests from its state, unless the
   * operation needs no state.
   */
  #checkState({ operation, caller, isMonitorWithoutState }: OperationCall): void {
    if (operation?.isAlwaysServed === true) return
    // The host user and monitoring systems were admitted without reading the state.
    const isAdmitted = caller?.kind === 'hostUser' || isMonitorWithoutState
    if (operation?.needsNoState === true && isAdmitted) return
    const refusal = this.#deps.refusal()
    if (refusal !== null) throw new Problem(refusal)
  }

  /**
   * Sends an error. If this controller must meanwhile not serve requests from its state, sends that
   * refusal instead, because the error may be based on the state.
   */
  #fail(reply: FastifyReply, call: OperationCall, error: unknown): void {
    this.#answerer.fail(reply, call, this.#stateFault(call) ?? error)
  }

  #succeed(reply: FastifyReply, call: OperationCall, answer: Reply): void {
    const fault = this.#stateFault(call)
    if (fault === null) {
      this.#answerer.succeed(reply, call, answer)
      return
    }
    this.#answerer.drop(answer)
    this.#answerer.fail(reply, call, fault)
  }

  #stateFault(call: OperationCall): Problem | null {
    try {
      this.#checkState(call)
      return null
    } catch (error) {
      return call.proposed === null
        ? (error as Problem)
        : outcomeUnknownProblem(call.proposed, error)
    }
  }

  #handle(call: OperationCall, operation: Operation, body: unknown): Reply | Promise<Reply> {
    this.#checkState(call)
    // Reads the applied index before the handler reads the state, so that the response never claims
    // to reflect a later index than it does.
    call.index = this.#deps.state.appliedIndex
    return operation.handle(call, body)
  }

  async #handleLater(call: OperationCall, operation: Operation, body: unknown): Promise<Reply> {
    const { reads } = this.#deps
    this.#checkCrowd(call)
    await reads.reachIndex(call.metadata.minIndex)
    if (call.metadata.isLinearizable) await reads.reachLatest()
    this.#admitAgain(call, operation)
    return this.#handle(call, operation, body)
  }

  /**
   * Waits for a result, with a limit on the number of waiting requests, and until the deadline of
   * the request. Drops a result that arrives after the deadline.
   */
  #wait(reply: FastifyReply, call: OperationCall, result: Promise<Reply>): void {
    const { sharer } = call
    const leftMs = Math.max(0, call.deadlineMs - this.#deps.clock.monotonicMs())
    this.#waiting.take(sharer)
    const timer = setTimeout(() => {
      const { proposed } = call
      call.isAbandoned = proposed === null
      const fault = proposed === null ? new Problem('TIMEOUT') : outcomeUnknownProblem(proposed)
      this.#answerer.fail(reply, call, fault)
    }, leftMs)
    result
      .then(
        (answer) => {
          if (reply.raw.headersSent) this.#answerer.drop(answer)
          else this.#succeed(reply, call, answer)
        },
        (error: unknown) => this.#fail(reply, call, error),
      )
      .catch((error: unknown) => this.#answerer.fail(reply, call, error))
      .finally(() => {
        clearTimeout(timer)
        this.#waiting.giveBack(sharer)
        call.releaseBody?.()
      })
      .catch(() => undefined)
  }
}

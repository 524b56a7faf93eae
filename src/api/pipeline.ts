import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { FairShare } from '../lib/bounds/fair-share.ts'
import { Problem, fieldProblem } from '../lib/problems.ts'
import { sharerAt } from '../lib/bounds/source.ts'
import type { ReplyWriter } from './answers/reply-writer.ts'
import { bearersIn } from './auth/external-jwt/token-text.ts'
import { isMonitor } from './auth/monitor.ts'
import type { RequestAdmission } from './auth/session-guard.ts'
import { requireNotSocketOnly, type SocketCaller, systemCallerAt } from './auth/system-caller.ts'
import { RequestContext, type RequestQuery } from './call.ts'
import { parseMinIndex, parseNetRequestId } from './consistency.ts'
import { corsPreflight } from './answers/cors.ts'
import type { Reply } from './answers/envelope.ts'
import type { Operation, Permission } from './operation.ts'
import type { ApiParts } from './parts.ts'
import { checkQuery } from './answers/query-parameters.ts'
import { parseIfMatch } from './records/revisions.ts'
import type { ApiServices } from './records/services.ts'
import { peerChainOf } from './transport/peer.ts'
import { Validator } from './schemas/validation.ts'
import { outcomeUnknown } from './records/writes.ts'
import { idempotencyOf } from './write-origin.ts'
import { checkHead, isAccepted, headerValuesOf, tokenOf } from './transport/request-head.ts'

const JSON_ONLY = ['application/json'] as const
type Check = (value: unknown) => void

/**
 * Judges every request in this order: size, route, session, permission, accepted types, body and
 * schema, the point of the log it must reflect; then runs its operation, bounded in time and count.
 */
export class Pipeline {
  readonly #parts: ApiParts
  readonly #services: ApiServices
  readonly #answerer: ReplyWriter
  readonly #validator = new Validator()
  readonly #waiting: FairShare
  /** Of the listener, never of a request: null on every listener but that of the admin socket. */
  readonly #socketCaller: SocketCaller | null

  constructor(
    parts: ApiParts,
    services: ApiServices,
    answerer: ReplyWriter,
    socketCaller: SocketCaller | null = null,
  ) {
    this.#socketCaller = socketCaller
    this.#parts = parts
    this.#services = services
    this.#answerer = answerer
    this.#waiting = new FairShare(parts.limits.waitingRequestsMax)
  }

  /** The first hook: all that needs no body. An unknown path goes on to its own handler. */
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
      checkHead(request)
      this.#checkSize(request, operation)
      if (operation === null) {
        done()
        return
      }
      const pending = this.#admit(request, call, operation)
      if (pending === null) {
        this.#readHeaders(request, call, operation)
        done()
        return
      }
      pending
        .then(() => {
          this.#readHeaders(request, call, operation)
          done()
        })
        .catch((error: unknown) => {
          this.#fail(reply, call, error)
        })
    } catch (error) {
      this.#answerer.fail(reply, call, error)
    }
  }

  /** The last step. */
  handlerOf(operation: Operation): (request: FastifyRequest, reply: FastifyReply) => void {
    const { body } = operation
    const check = body === undefined ? null : this.#validator.checkOf(body.schema.schema)
    return (request, reply) => {
      const call = this.callOf(request)
      call.isAtWork = true
      call.sharer = call.caller === null ? sharerAt(call.address) : call.caller.identity.id
      const begin = (): void => {
        this.#work(request, reply, call, operation, check)
      }
      let hasWaited = false
      try {
        hasWaited = this.#services.processor.run(call.sharer, () => {
          if (hasWaited) this.#workAfterWait(request, reply, call, begin)
          else begin()
        })
      } catch (error) {
        this.#answerer.fail(reply, call, error)
        call.releaseBody()
      }
    }
  }

  /** The caller may have gone or lost its session, and the time for an answer may be over. */
  #workAfterWait(
    request: FastifyRequest,
    reply: FastifyReply,
    call: RequestContext,
    begin: () => void,
  ): void {
    if (request.raw.socket.destroyed) {
      call.releaseBody()
      return
    }
    try {
      const waitedMs = this.#parts.clock.monotonicMs() - call.startedAtMs
      if (waitedMs > this.#answerMsMax(call)) throw new Problem('TIMEOUT')
      if (call.operation !== null) {
        this.#admitAgain(call, tokenOf(request), call.operation)
      }
    } catch (error) {
      this.#answerer.fail(reply, call, error)
      call.releaseBody()
      return
    }
    begin()
  }

  #work(
    request: FastifyRequest,
    reply: FastifyReply,
    call: RequestContext,
    operation: Operation,
    check: Check | null,
  ): void {
    try {
      this.#takeInput(request, call, operation, check)
      // Before a write is handed over: from then on its caller is owed the outcome.
      if (operation.method !== 'GET') this.#checkCrowd(call)
      if (call.minIndex > this.#parts.state.appliedIndex || call.isLinearizable) {
        this.#wait(reply, call, this.#handleLater(call, operation, tokenOf(request)))
        return
      }
      const result = this.#handle(call, operation)
      if (result instanceof Promise) {
        this.#wait(reply, call, result)
        return
      }
      this.#answerer.succeed(reply, call, result)
    } catch (error) {
      this.#answerer.fail(reply, call, error)
    }
    call.releaseBody()
  }

  #checkCrowd(call: RequestContext): void {
    if (!this.#waiting.hasRoomFor(call.sharer)) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  /** The call of a request: made by the first hook, or here when it failed before. */
  callOf(request: FastifyRequest): RequestContext {
    if (request.call !== null && request.call !== undefined) return request.call
    const { config } = request.routeOptions
    const { raw } = request
    const url = raw.url ?? '/'
    const end = url.indexOf('?')
    const call = new RequestContext({
      operation: config.operation ?? null,
      api: config.api ?? 'host',
      method: raw.method ?? '',
      path: end === -1 ? url : url.slice(0, end),
      address: raw.socket.remoteAddress ?? '',
      startedAtMs: this.#parts.clock.monotonicMs(),
      accept: request.headers.accept ?? '',
      traceparent: request.headers['traceparent'],
    })
    call.peerChain = () => peerChainOf(raw.socket)
    call.bearers = () => bearersIn(headerValuesOf(raw, 'authorization'))
    call.isDisconnected = () => raw.socket.destroyed
    return call
  }

  #answerPreflight(request: FastifyRequest, reply: FastifyReply, call: RequestContext): void {
    const { headers } = request
    const extra = corsPreflight({
      method: headers['access-control-request-method'],
      headers: headers['access-control-request-headers'],
    })
    this.#answerer.plain(reply, call, 200, extra)
  }

  /** Before anything else: what declares too much is not read at all. */
  #checkSize(request: FastifyRequest, operation: Operation | null): void {
    const declared = request.headers['content-length']
    if (declared === undefined) return
    const { bodyBytesMax } = this.#parts.limits
    if (Number(declared) > Math.min(bodyBytesMax, operation?.bodyBytesMax ?? bodyBytesMax)) {
      throw new Problem('REQUEST_ENTITY_TOO_LARGE')
    }
  }

  #admit(
    request: FastifyRequest,
    call: RequestContext,
    operation: Operation,
  ): Promise<void> | null {
    const { permission, elevatedPermission: moreFor } = operation
    const isOpen = permission === 'public' && moreFor === undefined
    const token = tokenOf(request)
    // A session counts here too, so that a proxy to the socket lends its callers no right.
    if (token === undefined && !isOpen) {
      call.caller = systemCallerAt(this.#socketCaller, request.raw, operation)
    }
    this.#checkState(call)
    if (isOpen) return null
    if (call.caller !== null) return null
    // Who may be shown more would be told by a state that is wrong.
    if (this.#parts.refusal() === 'NODE_QUARANTINED') return null
    if (permission === 'public' && moreFor !== undefined) {
      return token === undefined ? null : this.#admitForMore(call, token, moreFor)
    }
    if (token === undefined && operation.isForMonitors === true) {
      if (isMonitor(this.#parts, request.raw.socket)) return null
    }
    const admission = this.#services.gate.admit(call, token, permission)
    if (admission instanceof Promise) return admission.then((found) => take(call, found, operation))
    take(call, admission, operation)
    return null
  }

  /** After a wait: the session that the request was admitted by may have ended. */
  #admitAgain(call: RequestContext, token: string | undefined, operation: Operation): void {
    if (call.caller === null || token === undefined) return
    take(
      call,
      this.#services.gate.admitAgain(call, call.caller, token, operation.permission),
      operation,
    )
  }

  /** A request that is not admitted gets what is public. */
  #admitForMore(call: RequestContext, token: string, permission: Permission): Promise<void> | null {
    const enter = (admission: RequestAdmission): void => {
      if (admission.isAdmitted) call.caller = admission.caller
    }
    try {
      const admission = this.#services.gate.admit(call, token, permission)
      if (admission instanceof Promise) return admission.then(enter).catch(() => undefined)
      enter(admission)
    } catch {
      // The answer without more is for everybody.
    }
    return null
  }

  #readHeaders(request: FastifyRequest, call: RequestContext, operation: Operation): void {
    const { headers } = request
    const { types = JSON_ONLY, ignoresAccept = false } = operation.response
    if (!ignoresAccept && !isAccepted(headers.accept, types)) {
      throw new Problem('NOT_ACCEPTABLE', {
        fault: { field: 'Accept', reason: `must allow one of ${types.join(', ')}` },
      })
    }
    const minIndex = headers['net-min-index']
    if (typeof minIndex === 'string') {
      call.minIndex = parseMinIndex(minIndex, this.#parts.cluster.generation)
    }
    const requestId = headers['net-request-id']
    if (typeof requestId === 'string') {
      call.netRequestId = { text: requestId, bytes: parseNetRequestId(requestId) }
    }
    const ifMatch = headers['if-match']
    if (ifMatch !== undefined && operation.method !== 'GET') {
      // Passed over, it would let a write through that its caller wanted held back.
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

  #takeInput(
    request: FastifyRequest,
    call: RequestContext,
    operation: Operation,
    check: Check | null,
  ): void {
    call.params = request.params as Readonly<Record<string, string>>
    call.query = request.query as RequestQuery
    checkQuery(call, operation.query ?? [], this.#parts.limits)
    const consistency = call.first('consistency')
    if (consistency === 'linearizable') call.isLinearizable = true
    else if (consistency !== undefined && consistency !== 'local') {
      throw fieldProblem('consistency', 'should be one of [local linearizable]', consistency)
    }
    if (check === null) return
    const { body } = request
    if (call.isTextBody) {
      call.body = body
      return
    }
    if (body !== undefined && body !== null) check(body)
    else if (body === null || operation.body?.isRequired === true) {
      throw fieldProblem('body', 'body in body is required')
    }
    call.body = body ?? {}
  }

  /** @throws {Problem} while the state of this controller is not to be answered from. */
  #checkState({ operation, caller }: RequestContext): void {
    if (operation?.isAlwaysServed === true) return
    // Nothing of the state has told who that is.
    if (operation?.needsNoState === true && caller?.system !== undefined) return
    const refusal = this.#parts.refusal()
    if (refusal !== null) throw new Problem(refusal)
  }

  /**
   * After a wait, what was judged, read or written may rest on a state that was found wrong since:
   * then neither an answer nor a refusal of it is sent.
   */
  #fail(reply: FastifyReply, call: RequestContext, error: unknown): void {
    this.#answerer.fail(reply, call, this.#stateFault(call) ?? error)
  }

  #succeed(reply: FastifyReply, call: RequestContext, answer: Reply): void {
    const fault = this.#stateFault(call)
    if (fault === null) {
      this.#answerer.succeed(reply, call, answer)
      return
    }
    this.#answerer.drop(answer)
    this.#answerer.fail(reply, call, fault)
  }

  #stateFault(call: RequestContext): Problem | null {
    try {
      this.#checkState(call)
      return null
    } catch (error) {
      return call.hasProposed ? outcomeUnknown(idempotencyOf(call), error) : (error as Problem)
    }
  }

  #handle(call: RequestContext, operation: Operation): Reply | Promise<Reply> {
    this.#checkState(call)
    // Taken before the state is read: an answer never claims to reflect more than it does.
    call.index = this.#parts.state.appliedIndex
    return operation.handle(call)
  }

  async #handleLater(call: RequestContext, operation: Operation, token?: string): Promise<Reply> {
    const { reads } = this.#parts
    this.#checkCrowd(call)
    await reads.reachIndex(call.minIndex)
    if (call.isLinearizable) await reads.reachLatest()
    this.#admitAgain(call, token, operation)
    return this.#handle(call, operation)
  }

  #answerMsMax({ operation }: RequestContext): number {
    return operation?.answerMsMax ?? this.#parts.limits.handlerTimeoutMs
  }

  /** Bounds how long and how many; the answer that comes first is the answer. */
  #wait(reply: FastifyReply, call: RequestContext, result: Promise<Reply>): void {
    const { sharer } = call
    this.#waiting.take(sharer)
    const timer = setTimeout(() => {
      call.isAbandoned = !call.hasProposed
      const fault = call.hasProposed ? outcomeUnknown(idempotencyOf(call)) : new Problem('TIMEOUT')
      this.#answerer.fail(reply, call, fault)
    }, this.#answerMsMax(call))
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
        call.releaseBody()
      })
      .catch(() => undefined)
  }
}

/** @throws {Problem} UNAUTHORIZED for a request that is not admitted; ADMIN_SOCKET_ONLY. */
function take(call: RequestContext, admission: RequestAdmission, operation: Operation): void {
  // A session that is not good leaves the caller that an earlier judgement found.
  if (admission.caller !== null) call.caller = admission.caller
  if (!admission.isAdmitted) {
    call.challenge = admission.challenge
    throw new Problem('UNAUTHORIZED')
  }
  requireNotSocketOnly(operation)
}

import { assert } from '../../lib/assert.ts'
import { toTransferableBytes } from '../../lib/runtime/transferable-bytes.ts'
import { Problem, isProblemCode } from '../../lib/problems.ts'
import {
  PEER_PAYLOAD_BYTES_MAX,
  type PeerCaller,
  type PeerChannel,
  type PeerHandler,
} from '../peer-channel.ts'
import type { NodeId } from '../../raft/types.ts'
import type { PeerCallFailure, ConsensusThreadEvent, MainThreadLink } from '../thread-channel.ts'

/** Maximum calls of this controller that wait for a response. */
const CALLS_MAX = 1024

interface PendingCall {
  readonly resolve: (payload: Uint8Array) => void
  readonly reject: (problem: Problem) => void
  readonly timer: NodeJS.Timeout
}

interface Service {
  readonly access: 'members' | 'controllers'
  readonly handler: PeerHandler
}

type PeerEvent = Extract<
  ConsensusThreadEvent,
  { type: 'note' | 'called' | 'callAnswered' | 'link' }
>

/** The main thread's side of the {@link PeerChannel}. The consensus thread sends the frames. */
export class PeerRpc implements PeerChannel {
  readonly #post: MainThreadLink['post']
  readonly #onUnhandled: (method: string, error: unknown) => void
  readonly #listeners = new Map<string, (from: NodeId, payload: Uint8Array) => void>()
  readonly #linkListeners: ((peer: NodeId, isReady: boolean) => void)[] = []
  readonly #services = new Map<string, Service>()
  readonly #calls = new Map<number, PendingCall>()
  readonly #ready = new Set<NodeId>()
  #nextCall = 1

  /** @param onUnhandled called with errors of handlers that are not a {@link Problem}. */
  constructor(post: MainThreadLink['post'], onUnhandled: (method: string, error: unknown) => void) {
    this.#post = post
    this.#onUnhandled = onUnhandled
  }

  note(to: NodeId, topic: string, payload: Uint8Array): void {
    assert(payload.length <= PEER_PAYLOAD_BYTES_MAX, 'a note is within its limit')
    if (!this.#ready.has(to)) return
    const owned = toTransferableBytes(payload)
    this.#post({ type: 'note', to, topic, payload: owned }, [owned.buffer])
  }

  onNote(topic: string, listener: (from: NodeId, payload: Uint8Array) => void): void {
    assert(!this.#listeners.has(topic), `topic ${topic} has one listener`)
    this.#listeners.set(topic, listener)
  }

  onLink(listener: (peer: NodeId, isReady: boolean) => void): void {
    this.#linkListeners.push(listener)
  }

  readyPeers(): readonly NodeId[] {
    return [...this.#ready].sort()
  }

  async call(
    to: NodeId,
    method: string,
    payload: Uint8Array,
    timeoutMs: number,
  ): Promise<Uint8Array> {
    assert(payload.length <= PEER_PAYLOAD_BYTES_MAX, 'a request is within its limit')
    if (this.#calls.size >= CALLS_MAX) throw new Problem('SERVER_TOO_MANY_REQUESTS')
    const id = this.#nextCall
    this.#nextCall += 1
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id)
        reject(unreachable(`no response from ${to} within ${timeoutMs} ms`))
      }, timeoutMs)
      this.#calls.set(id, { resolve, reject, timer })
      this.#post({ type: 'call', id, to, method, payload })
    })
  }

  serve(method: string, access: 'members' | 'controllers', handler: PeerHandler): void {
    assert(!this.#services.has(method), `method ${method} has one handler`)
    this.#services.set(method, { access, handler })
  }

  handle(event: PeerEvent): void {
    switch (event.type) {
      case 'note':
        this.#listeners.get(event.topic)?.(event.from, event.payload)
        break
      case 'called':
        void this.#serve(event.ticket, event.caller, event.method, event.payload)
        break
      case 'callAnswered':
        this.#onAnswer(event.id, event.payload, event.failure)
        break
      case 'link':
        if (event.isReady) this.#ready.add(event.peer)
        else this.#ready.delete(event.peer)
        for (const listener of this.#linkListeners) listener(event.peer, event.isReady)
        break
    }
  }

  /** Rejects all calls in progress. */
  close(): void {
    for (const { reject, timer } of this.#calls.values()) {
      clearTimeout(timer)
      reject(unreachable('this controller is stopping'))
    }
    this.#calls.clear()
  }

  async #serve(
    ticket: number,
    caller: PeerCaller,
    method: string,
    payload: Uint8Array,
  ): Promise<void> {
    try {
      const service = this.#services.get(method)
      if (service === undefined) {
        throw new Problem('NOT_FOUND', {
          detail: 'unknown request; this controller may run an older version',
        })
      }
      if (service.access === 'members' && !caller.isMember) {
        throw new Problem('UNAUTHORIZED', {
          detail: `${caller.id} is not a member of this cluster`,
        })
      }
      const answer = await service.handler(caller, payload)
      assert(answer.length <= PEER_PAYLOAD_BYTES_MAX, 'an answer is within its limit')
      this.#post({ type: 'answerCall', ticket, payload: answer, failure: null })
    } catch (error) {
      if (!(error instanceof Problem)) this.#onUnhandled(method, error)
      const problem = error instanceof Problem ? error : new Problem('UNHANDLED')
      const failure = { code: problem.code, reason: problem.detail ?? '' }
      this.#post({ type: 'answerCall', ticket, payload: new Uint8Array(0), failure })
    }
  }

  #onAnswer(id: number, payload: Uint8Array, failure: PeerCallFailure | null): void {
    const pending = this.#calls.get(id)
    if (pending === undefined) return
    this.#calls.delete(id)
    clearTimeout(pending.timer)
    if (failure === null) pending.resolve(payload)
    else pending.reject(toPeerCallProblem(failure))
  }
}

/**
 * Converts the failure of a call to a problem. A code that this release does not know, which a
 * newer release may send, becomes UNHANDLED.
 */
export function toPeerCallProblem({ code, reason }: PeerCallFailure): Problem {
  return new Problem(isProblemCode(code) ? code : 'UNHANDLED', { detail: reason.slice(0, 500) })
}

function unreachable(detail: string): Problem {
  return new Problem('PEER_UNREACHABLE', { detail })
}

import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'

import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import {
  decodeLeaderCall,
  decodePeerMessage,
  encodeLeaderCall,
  encodePeerMessage,
  type PeerMethod,
} from '../peer/peer-message.ts'
import type { MembershipConsensus } from './membership-consensus.ts'
import { pause } from '../../lib/runtime/wait.ts'

/**
 * Serves a request on the leader.
 * @param timeoutMs the time within which the handler must respond.
 */
type LeaderHandler<Q extends DescMessage, A extends DescMessage> = (
  request: MessageShape<Q>,
  timeoutMs: number,
) => Promise<MessageInitShape<A>>

const RETRY_MS = 50
/**
 * Part of the timeout that is reserved for the response, so that the caller receives the leader's
 * reason instead of a timeout.
 */
const MARGIN_MS = 500
const TIMEOUT_MS_MAX = 60_000

/**
 * Sends requests from any controller to the leader, for requests that only the leader can serve. If
 * the leader fails, the next leader receives the same request, so a request must be safe to repeat.
 */
export class LeaderRequestForwarder {
  readonly #consensus: MembershipConsensus
  readonly #clock: Clock
  /** Handlers by method name. The types of a handler follow from its method. */
  readonly #handlers = new Map<string, LeaderHandler<never, never>>()

  constructor(consensus: MembershipConsensus, clock: Clock) {
    this.#consensus = consensus
    this.#clock = clock
  }

  /**
   * Registers a method that only members may call.
   * @param handler runs on the leader.
   */
  serve<Q extends DescMessage, A extends DescMessage>(
    { name, request, answer }: PeerMethod<Q, A>,
    handler: LeaderHandler<Q, A>,
  ): void {
    this.#handlers.set(name, handler as LeaderHandler<never, never>)
    this.#consensus.peers.serve(name, 'members', async (_caller, payload) => {
      const call = decodeLeaderCall(request, payload)
      this.#refuseUnlessLeader()
      const timeoutMs = Math.min(call.timeoutMs, TIMEOUT_MS_MAX)
      return encodePeerMessage(answer, await handler(call.request, timeoutMs))
    })
  }

  /**
   * Sends a request to the leader and returns the response.
   * @param answerHere called after each attempt, once an attempt has failed with an error; returns
   * the response if this controller knows it. After its own removal, for example, no peer responds
   * to this controller.
   * @throws {Problem} the error that the leader returned; CLUSTER_NO_LEADER, PEER_UNREACHABLE or
   * NODE_QUARANTINED when no leader served the request within `timeoutMs`, although the request may
   * still take effect.
   */
  async ask<Q extends DescMessage, A extends DescMessage>(
    method: PeerMethod<Q, A>,
    request: MessageInitShape<Q>,
    timeoutMs: number,
    answerHere: () => MessageInitShape<A> | null = () => null,
  ): Promise<MessageShape<A>> {
    const deadlineMs = this.#clock.monotonicMs() + timeoutMs
    let last: Problem | null = null
    for (;;) {
      const leftMs = Math.round(deadlineMs - this.#clock.monotonicMs())
      if (leftMs <= MARGIN_MS) throw last ?? new Problem('CLUSTER_NO_LEADER')
      try {
        const answer = await this.#askOnce(method, request, leftMs)
        if (answer !== null) return answer
      } catch (error) {
        if (!(error instanceof Problem) || !isPassing(error)) throw error
        last = error
      }
      const known = last === null ? null : answerHere()
      if (known !== null) return create(method.answer, known)
      await pause(RETRY_MS)
    }
  }

  /**
   * Sends the request once.
   * @returns null when there is no leader.
   */
  async #askOnce<Q extends DescMessage, A extends DescMessage>(
    method: PeerMethod<Q, A>,
    request: MessageInitShape<Q>,
    leftMs: number,
  ): Promise<MessageShape<A> | null> {
    const leader = this.#consensus.leaderId()
    if (leader === null) return null
    const timeoutMs = leftMs - MARGIN_MS
    const { name } = method
    if (leader !== this.#consensus.selfId) {
      const payload = encodeLeaderCall(method.request, request, timeoutMs)
      const answer = await this.#consensus.peers.call(leader, name, payload, leftMs)
      return decodePeerMessage(method.answer, answer)
    }
    const handler = this.#handlers.get(name) as LeaderHandler<Q, A> | undefined
    if (handler === undefined) throw new Problem('NOT_FOUND')
    return create(method.answer, await handler(create(method.request, request), timeoutMs))
  }

  #refuseUnlessLeader(): void {
    if (this.#consensus.leaderId() === this.#consensus.selfId) return
    const detail = `${this.#consensus.selfId} is not the leader; ask ${this.#consensus.leaderId() ?? 'again once a leader is elected'}`
    throw new Problem('CLUSTER_NO_LEADER', { detail })
  }
}

/** Whether the error may disappear, on the next leader or later on the same leader. */
function isPassing({ code }: Problem): boolean {
  const codes = ['CLUSTER_NO_LEADER', 'PEER_UNREACHABLE', 'NODE_QUARANTINED']
  return codes.includes(code)
}

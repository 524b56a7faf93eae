import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { Consensus } from './consensus.ts'
import { countIn, decodeMessage, encodeMessage, messageIn } from './messages.ts'
import type { Message } from './messages.ts'
import { pause } from './wait.ts'

/** @param timeoutMs what is left of the caller's patience. */
type LeaderHandler = (request: Message, timeoutMs: number) => Promise<Message>

const RETRY_MS = 50
/** For the way back, so that the leader's reason arrives rather than a timeout. */
const MARGIN_MS = 500
const TIMEOUT_MS_MAX = 60_000

/**
 * Requests that only the leader can serve, asked from any controller: handed to whoever leads, and again to the next one
 * when it is lost. What is asked this way must be safe to repeat.
 */
export class LeaderCalls {
  readonly #consensus: Consensus
  readonly #clock: Clock
  readonly #handlers = new Map<string, LeaderHandler>()

  constructor(consensus: Consensus, clock: Clock) {
    this.#consensus = consensus
    this.#clock = clock
  }

  /** Members alone may ask. @param handler runs on the leader. */
  serve(method: string, handler: LeaderHandler): void {
    this.#handlers.set(method, handler)
    this.#consensus.peers.serve(method, 'members', async (_caller, payload) => {
      const message = decodeMessage(payload)
      this.#refuseUnlessLeader()
      const timeoutMs = Math.min(countIn(message, 'timeoutMs'), TIMEOUT_MS_MAX)
      return encodeMessage(await handler(messageIn(message, 'request'), timeoutMs))
    })
  }

  /**
   * @param answerHere asked after each attempt that failed: this controller may have come to know the outcome by itself,
   * as one that is removed does, whom nobody answers any more.
   * @throws {Problem} what the leader answered; CLUSTER_NO_LEADER or PEER_UNREACHABLE when none has answered within
   * `timeoutMs`: what was asked may take effect nonetheless.
   */
  async ask(
    method: string,
    request: Message,
    timeoutMs: number,
    answerHere: () => Message | null = () => null,
  ): Promise<Message> {
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
      if (known !== null) return known
      await pause(RETRY_MS)
    }
  }

  /** @returns null when there is no leader. */
  async #askOnce(method: string, request: Message, leftMs: number): Promise<Message | null> {
    const leader = this.#consensus.leaderId()
    if (leader === null) return null
    const timeoutMs = leftMs - MARGIN_MS
    if (leader !== this.#consensus.selfId) {
      const payload = encodeMessage({ request, timeoutMs })
      return decodeMessage(await this.#consensus.peers.call(leader, method, payload, leftMs))
    }
    const handler = this.#handlers.get(method)
    if (handler === undefined) throw new Problem('NOT_FOUND')
    return await handler(request, timeoutMs)
  }

  #refuseUnlessLeader(): void {
    if (this.#consensus.leaderId() === this.#consensus.selfId) return
    const detail = `${this.#consensus.selfId} is not the leader; ask ${this.#consensus.leaderId() ?? 'again once a leader is elected'}`
    throw new Problem('CLUSTER_NO_LEADER', { detail })
  }
}

/** The next leader, or the same one a moment later, may do it. */
function isPassing({ code }: Problem): boolean {
  const codes = ['CLUSTER_NO_LEADER', 'PEER_UNREACHABLE', 'NODE_QUARANTINED']
  return codes.includes(code)
}

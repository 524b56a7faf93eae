import { randomUUID } from 'node:crypto'

import type { Random } from '../../lib/random.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { Link } from './link.ts'

type DialerConfig = NonNullable<RouterConfig['link']>['dialers'][number]

export interface DialedPeer {
  readonly id: string
  readonly addresses: readonly string[]
  readonly isHealthy: boolean
  readonly version: string
}

/** One dial of a link. */
export interface LinkTarget {
  readonly address: string
  readonly linkId: string
  readonly iteration: number
}

interface PeerDialerDeps {
  readonly config: DialerConfig
  readonly random: Random
  readonly log: ProgramLogger
  /** @throws one clause. */
  readonly dial: (peer: DialedPeer, target: LinkTarget, signal: AbortSignal) => Promise<Link>
  /** Whether a link to that router exists. */
  readonly isLinked: (peerId: string) => boolean
  /**
   * Runs a dial when it is this peer's turn.
   * @returns false if the dial is refused because too many dials wait.
   */
  readonly inTurn: (peerId: string, task: () => Promise<void>) => boolean
}

/** Keeps dialing another router until a link to it exists, no matter which side dialed it. */
export class PeerDialer {
  readonly #deps: PeerDialerDeps
  /** All dials of this peer use the same link ID; the iteration distinguishes them. */
  readonly #linkId = randomUUID()
  readonly #abort = new AbortController()
  #peer: DialedPeer
  #iteration = 0
  #waitMs = 0
  #timer: NodeJS.Timeout | null = null
  #isDialing = false
  #logged = ''

  constructor(deps: PeerDialerDeps, peer: DialedPeer) {
    this.#deps = deps
    this.#peer = peer
    this.#schedule(0)
  }

  /** Addresses at which this router dials the peer. */
  get addresses(): readonly string[] {
    return this.#peer.addresses
  }

  /** Applies a new report; a peer that has become healthy is dialed at once. */
  update(peer: DialedPeer): void {
    const isBetter = peer.isHealthy && !this.#peer.isHealthy
    const isMoved = peer.addresses.join() !== this.#peer.addresses.join()
    this.#peer = peer
    if (!isBetter && !isMoved) return
    this.#waitMs = 0
    this.#schedule(0)
  }

  /** Controllers cannot reach the peer; it is dialed with the policy for unhealthy peers. */
  setUnhealthy(): void {
    this.#peer = { ...this.#peer, isHealthy: false }
  }

  /** Dials again, because the link has closed. */
  redial(): void {
    this.#waitMs = 0
    this.#schedule(this.#nextWaitMs())
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#abort.abort()
  }

  #schedule(waitMs: number): void {
    if (this.#abort.signal.aborted) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#attempt()
    }, waitMs)
  }

  /**
   * The wait before the next dial: grows with each failure within the limits of the current policy,
   * and up to half of it is random.
   */
  #nextWaitMs(): number {
    const { config, random } = this.#deps
    const policy = this.#peer.isHealthy ? config.healthyDialBackoff : config.unhealthyDialBackoff
    const factor = Math.max(1, policy.retryBackoffFactor + random.next() - 0.5)
    const grown = this.#waitMs === 0 ? policy.minRetryInterval : this.#waitMs * factor
    this.#waitMs = Math.min(policy.maxRetryInterval, Math.max(policy.minRetryInterval, grown))
    return this.#waitMs
  }

  get #isWanted(): boolean {
    const { id, addresses } = this.#peer
    return addresses.length > 0 && !this.#abort.signal.aborted && !this.#deps.isLinked(id)
  }

  #attempt(): void {
    if (this.#isDialing || !this.#isWanted) return
    this.#isDialing = true
    if (this.#deps.inTurn(this.#peer.id, () => this.#dial())) return
    this.#isDialing = false
    this.#onFailed('', new Error('too many dials of links wait (forwarder.linkDialQueueLength)'))
  }

  async #dial(): Promise<void> {
    const { dial } = this.#deps
    if (!this.#isWanted) {
      this.#isDialing = false
      return
    }
    const { addresses } = this.#peer
    const address = addresses[this.#iteration % addresses.length] ?? ''
    this.#iteration += 1
    try {
      const target = { address, linkId: this.#linkId, iteration: this.#iteration }
      await dial(this.#peer, target, this.#abort.signal)
      this.#waitMs = 0
      this.#logged = ''
    } catch (error) {
      this.#onFailed(address, error)
    } finally {
      this.#isDialing = false
    }
  }

  #onFailed(address: string, error: unknown): void {
    if (this.#abort.signal.aborted) return
    const reason = errorMessage(error)
    if (reason !== this.#logged) {
      this.#logged = reason
      const fields = { routerId: this.#peer.id, address, reason }
      this.#deps.log.warn(fields, 'no link to the router; retrying with increasing delays')
    }
    this.#schedule(this.#nextWaitMs())
  }
}

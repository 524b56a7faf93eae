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

/** Address, link ID and iteration for one dial. */
export interface LinkTarget {
  readonly address: string
  readonly linkId: string
  readonly iteration: number
}

interface PeerDialerDeps {
  readonly config: DialerConfig
  readonly random: Random
  readonly log: ProgramLogger
  /** @throws an error whose message is a clause to be used within a sentence. */
  readonly dial: (peer: DialedPeer, target: LinkTarget, signal: AbortSignal) => Promise<Link>
  /** Whether a link to that router exists. */
  readonly isLinked: (peerId: string) => boolean
  /**
   * Runs a dial as soon as the limit of concurrent dials permits.
   * @returns false if too many dials wait.
   */
  readonly inTurn: (peerId: string, task: () => Promise<void>) => boolean
}

/**
 * Dials another router until a link to it exists, regardless of which of the two routers dialed it.
 */
export class PeerDialer {
  readonly #deps: PeerDialerDeps
  /** All dials to this peer use the same link ID and differ in the iteration. */
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

  /**
   * Applies a new report about the peer. A peer that has become healthy, or has other addresses, is
   * dialed immediately.
   */
  update(peer: DialedPeer): void {
    const isBetter = peer.isHealthy && !this.#peer.isHealthy
    const isMoved = peer.addresses.join() !== this.#peer.addresses.join()
    this.#peer = peer
    if (!isBetter && !isMoved) return
    this.#waitMs = 0
    this.#schedule(0)
  }

  /**
   * Called when a controller reports that it has no connection to the peer; this router then dials
   * the peer less often.
   */
  setUnhealthy(): void {
    this.#peer = { ...this.#peer, isHealthy: false }
  }

  /** Dials again after the link has closed. */
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
   * The wait before the next dial. It grows with each failure by a partly random factor, within the
   * limits of the backoff policy for healthy or unhealthy peers.
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

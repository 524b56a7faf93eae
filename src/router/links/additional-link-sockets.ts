import { errorMessage } from '../../lib/error-code.ts'
import { linkLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { Link } from './link.ts'
import { type LinkSocketType, linkSocketTypes } from '../../channel/messages/links.ts'

const { furtherSocketWaitMs, furtherSocketWaitMsMax } = linkLimits

interface AdditionalLinkSocketsDeps {
  readonly link: Link
  /** Number of sockets of each type that the link should have, including the first one. */
  readonly wanted: Readonly<Record<LinkSocketType, number>>
  readonly startupDelayMs: number
  /**
   * Dials one socket and adds it to the link.
   * @throws an error whose message is a clause to be used within a sentence.
   */
  readonly dial: (type: LinkSocketType, signal: AbortSignal) => Promise<void>
  readonly log: ProgramLogger
}

/**
 * Dials additional sockets for a link, one after the other, until the link has enough. Replaces
 * lost sockets while the link exists.
 */
export class AdditionalLinkSockets {
  readonly #deps: AdditionalLinkSocketsDeps
  readonly #abort = new AbortController()
  #timer: NodeJS.Timeout | null = null
  #isDialing = false
  #failures = 0

  constructor(deps: AdditionalLinkSocketsDeps) {
    this.#deps = deps
    deps.link.onSocketLost = () => this.#schedule(this.#waitMs())
    this.#schedule(deps.startupDelayMs)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#abort.abort()
  }

  #waitMs(): number {
    return Math.min(furtherSocketWaitMs * 2 ** this.#failures, furtherSocketWaitMsMax)
  }

  #schedule(waitMs: number): void {
    if (this.#abort.signal.aborted || this.#timer !== null || this.#isDialing) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#dialMissing()
    }, waitMs)
  }

  #missing(): LinkSocketType | undefined {
    const { link, wanted } = this.#deps
    return linkSocketTypes.find((type) => link.socketsOf(type) < wanted[type])
  }

  async #dialMissing(): Promise<void> {
    const { dial, log, link, wanted } = this.#deps
    this.#isDialing = true
    try {
      // Limits the number of dials in a row: if the peer closes the accepted sockets, the router
      // must pause before it dials again.
      for (let left = wanted['link.default'] + wanted['link.ack']; left > 0; left -= 1) {
        const type = this.#missing()
        if (type === undefined || this.#abort.signal.aborted) break
        await dial(type, this.#abort.signal)
      }
      this.#failures = 0
    } catch (error) {
      this.#failures = Math.min(this.#failures + 1, 10)
      const fields = { linkId: link.id, routerId: link.peerId, reason: errorMessage(error) }
      if (this.#failures === 1 && !this.#abort.signal.aborted) {
        log.warn(fields, 'no further socket of the link; retrying with increasing delays')
      }
    } finally {
      this.#isDialing = false
    }
    if (this.#missing() !== undefined) this.#schedule(this.#waitMs())
  }
}

import type { TabSessionState, TabSession } from './session.ts'

const CHANNEL = 'flotilla.session'
const ANSWER_MS = 250

/** Messages between the tabs of one browser at one origin. */
type SessionMessage =
  | { readonly kind: 'asked' }
  | { readonly kind: 'session'; readonly session: TabSessionState }
  | { readonly kind: 'ended'; readonly token: string }

/**
 * Shares the session between the tabs of a browser, so that a link opened in a new tab works
 * without a log-in. Only pages of this origin can listen, and each tab still stores the session
 * only for itself.
 */
export class CrossTabSession {
  readonly #session: TabSession
  readonly #channel = new BroadcastChannel(CHANNEL)
  #adopt: (() => void) | null = null

  constructor(session: TabSession) {
    this.#session = session
    this.#channel.onmessage = ({ data }: { readonly data: unknown }) =>
      this.#hear(data as SessionMessage)
    session.onEnd = (token) => this.#send({ kind: 'ended', token })
  }

  /**
   * Requests the session from the other tabs; resolves when one of them has responded, or at a
   * timeout.
   */
  async request(): Promise<void> {
    if (this.#session.current.value !== null) return
    await new Promise<void>((resolve) => {
      this.#adopt = resolve
      setTimeout(resolve, ANSWER_MS)
      this.#send({ kind: 'asked' })
    })
    this.#adopt = null
  }

  #send(message: SessionMessage): void {
    this.#channel.postMessage(message)
  }

  #hear(message: SessionMessage): void {
    const { value: current } = this.#session.current
    if (message.kind === 'asked') {
      if (current !== null && !current.isPartial) this.#send({ kind: 'session', session: current })
    } else if (message.kind === 'session') {
      // Only a tab that requested a session and has none adopts one.
      if (this.#adopt === null || current !== null) return
      this.#session.adopt(message.session)
      this.#adopt()
    } else if (current?.token === message.token) this.#session.adopt(null)
  }
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Logger of the room: one sentence a line, with fields beside it. The shape is pino's. */
export type Logger = Readonly<Record<LogLevel, (fields: object, message: string) => void>>

/**
 * Lets one line a key through per window, so a peer that knocks in vain every second fills no disk.
 */
export class LogThrottle {
  readonly #windowMs: number
  readonly #keysMax: number
  readonly #lastMs = new Map<string, number>()

  constructor(options: { readonly windowMs: number; readonly keysMax: number }) {
    this.#windowMs = options.windowMs
    this.#keysMax = options.keysMax
  }

  /** @returns whether the line may be written; a yes counts as written. */
  allow(key: string, nowMs: number): boolean {
    const last = this.#lastMs.get(key)
    if (last !== undefined && nowMs - last < this.#windowMs) return false
    this.#lastMs.delete(key)
    this.#lastMs.set(key, nowMs)
    if (this.#lastMs.size > this.#keysMax) {
      const [oldest] = this.#lastMs.keys()
      if (oldest !== undefined) this.#lastMs.delete(oldest)
    }
    return true
  }
}

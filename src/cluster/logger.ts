export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Logger of the code in this folder: one sentence per line with structured fields, as in pino. */
export type Logger = Readonly<Record<LogLevel, (fields: object, message: string) => void>>

/**
 * Allows one line per key and time window. Otherwise a peer that fails to connect every second
 * would fill the disk.
 */
export class LogThrottle {
  readonly #windowMs: number
  readonly #keysMax: number
  readonly #lastMs = new Map<string, number>()

  constructor(options: { readonly windowMs: number; readonly keysMax: number }) {
    this.#windowMs = options.windowMs
    this.#keysMax = options.keysMax
  }

  /**
   * Counts a line against the limit of its key.
   * @returns whether the caller may write the line; if so, the line counts as written.
   */
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

/** A log that a test wrote, and a function that checks the resulting state. */
export interface AppliedLog {
  /** Entries written so far. */
  readonly length: () => number
  /** @throws when replaying the log does not lead to the same state. */
  readonly judge: () => void | Promise<void>
  /**
   * Whether the test has closed the controller that wrote the log; null if no controller wrote it.
   */
  readonly isEnded: (() => boolean) | null
}

interface Kept {
  readonly log: AppliedLog
  judgedLength: number
}

/** The logs that the tests of a file write. Outside of a test runner it keeps none. */
class AppliedLogs {
  isKept = false
  #logs: Kept[] = []

  add(log: AppliedLog): void {
    if (this.isKept) this.#logs.push({ log, judgedLength: 0 })
  }

  /** Checks each log that has grown since its last check. */
  async judge(): Promise<void> {
    for (const kept of this.#logs) {
      const length = kept.log.length()
      if (length === kept.judgedLength) continue
      kept.judgedLength = length
      await kept.log.judge()
    }
    this.#logs = this.#logs.filter(({ log }) => log.isEnded?.() !== true)
  }

  /** @throws when a controller was started and never closed. */
  endFile(): void {
    const left = this.#logs.filter(({ log }) => log.isEnded?.() === false).length
    this.#logs = []
    if (left > 0) throw new Error(`${left} controllers were started and not closed`)
  }
}

export const appliedLogs = new AppliedLogs()

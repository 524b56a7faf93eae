/** Runs functions periodically until they are stopped. */
export interface PeriodicScheduler {
  /**
   * Calls `run` first within one period, then at each multiple of the period on this thread's
   * clock. Calls missed during a stall are skipped.
   * @returns a function that stops the calls.
   */
  every(periodMs: number, run: () => void): () => void
}

interface PeriodicRuns {
  readonly periodMs: number
  readonly runs: Set<() => void>
  dueMs: number
}

/**
 * Node's timers, captured at load time. The scheduler lives as long as the thread. If it used the
 * fake timers that one test installs, its work would stop for all later tests.
 */
const { setTimeout, clearTimeout } = globalThis

/** Node may fire a timer early by this much. */
const EARLY_MS = 1

/**
 * One timer for all periodic work of a thread. With separate timers, an idle controller spent most
 * of its processor time on waking up. With one timer, work with the same period, or a multiple of
 * it, runs in the same turn of the event loop. The timer never keeps a process alive.
 */
class SharedTimer implements PeriodicScheduler {
  readonly #periods = new Map<number, PeriodicRuns>()
  #timer: NodeJS.Timeout | null = null
  #wakesAtMs = Infinity

  every(periodMs: number, run: () => void): () => void {
    const entry = this.#runsOf(periodMs)
    // The wrapper makes each registration distinct, because the caller may pass the same function
    // twice.
    const own = (): void => run()
    entry.runs.add(own)
    this.#plan(entry.dueMs)
    return () => {
      entry.runs.delete(own)
      if (entry.runs.size === 0 && this.#periods.get(periodMs) === entry)
        this.#periods.delete(periodMs)
    }
  }

  #runsOf(periodMs: number): PeriodicRuns {
    let entry = this.#periods.get(periodMs)
    if (entry === undefined) {
      entry = { periodMs, runs: new Set(), dueMs: nextMultipleMs(periodMs, performance.now()) }
      this.#periods.set(periodMs, entry)
    }
    return entry
  }

  #plan(atMs: number): void {
    if (atMs >= this.#wakesAtMs) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#wakesAtMs = atMs
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, atMs - performance.now()))
    this.#timer.unref()
  }

  #wake(): void {
    const nowMs = performance.now()
    this.#wakesAtMs = Infinity
    this.#timer = null
    const due: PeriodicRuns[] = []
    for (const entry of this.#periods.values()) {
      if (entry.dueMs <= nowMs + EARLY_MS) {
        entry.dueMs = nextMultipleMs(entry.periodMs, nowMs + EARLY_MS)
        due.push(entry)
      }
      this.#plan(entry.dueMs)
    }
    // The next run is scheduled before the functions run, so that a function that throws does not
    // stop the others permanently.
    for (const { runs } of due) for (const run of runs) run()
  }
}

function nextMultipleMs(periodMs: number, nowMs: number): number {
  return (Math.floor(nowMs / periodMs) + 1) * periodMs
}

export const periodicScheduler: PeriodicScheduler = new SharedTimer()

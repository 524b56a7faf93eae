/** Runs something again and again until it is told to stop. */
export interface PeriodicScheduler {
  /**
   * First within one period, then once in each, at multiples of it on the clock of this thread:
   * those that a stall has missed are not made up for.
   * @returns the way to stop it.
   */
  every(periodMs: number, run: () => void): () => void
}

interface Beat {
  readonly periodMs: number
  readonly runs: Set<() => void>
  dueMs: number
}

/** Node may run a timer so much before its time. */
const EARLY_MS = 1

/**
 * One timer for what a thread of a controller does again and again while nobody asks anything. A
 * timer each would wake the thread at a time each: an idle controller spent most of its processor
 * time on waking. Here what has the same period runs in the same turn, and so does what has a
 * multiple of it. Never keeps a process alive.
 */
class SharedTimer implements PeriodicScheduler {
  readonly #beats = new Map<number, Beat>()
  #timer: NodeJS.Timeout | null = null
  #wakesAtMs = Infinity

  every(periodMs: number, run: () => void): () => void {
    const beat = this.#beatOf(periodMs)
    // A function of its own, as the same one may be given twice.
    const own = (): void => run()
    beat.runs.add(own)
    this.#plan(beat.dueMs)
    return () => {
      beat.runs.delete(own)
      if (beat.runs.size === 0 && this.#beats.get(periodMs) === beat) this.#beats.delete(periodMs)
    }
  }

  #beatOf(periodMs: number): Beat {
    let beat = this.#beats.get(periodMs)
    if (beat === undefined) {
      beat = { periodMs, runs: new Set(), dueMs: nextMultipleMs(periodMs, performance.now()) }
      this.#beats.set(periodMs, beat)
    }
    return beat
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
    const due: Beat[] = []
    for (const beat of this.#beats.values()) {
      if (beat.dueMs <= nowMs + EARLY_MS) {
        beat.dueMs = nextMultipleMs(beat.periodMs, nowMs + EARLY_MS)
        due.push(beat)
      }
      this.#plan(beat.dueMs)
    }
    // Planned before they run: one that throws must not end the others for good.
    for (const { runs } of due) for (const run of runs) run()
  }
}

function nextMultipleMs(periodMs: number, nowMs: number): number {
  return (Math.floor(nowMs / periodMs) + 1) * periodMs
}

export const periodicScheduler: PeriodicScheduler = new SharedTimer()

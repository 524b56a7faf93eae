/** Runs something again and again until it is told to stop. */
export interface PeriodicScheduler {
  /** @returns the way to stop it. */
  every(periodMs: number, run: () => void): () => void
}

/** Timers that never keep a process alive. */
export const periodicScheduler: PeriodicScheduler = {
  every(periodMs, run) {
    const timer = setInterval(run, periodMs)
    timer.unref()
    return () => {
      clearInterval(timer)
    }
  },
}

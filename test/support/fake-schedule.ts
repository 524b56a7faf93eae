import { vi } from 'vitest'

import { periodicScheduler } from '../../src/lib/periodic-scheduler.ts'

/** Gives each periodic task a separate interval, which fake timers can advance. */
export function scheduleByIntervals(): void {
  vi.spyOn(periodicScheduler, 'every').mockImplementation((periodMs, run) => {
    const timer = setInterval(run, periodMs)
    return () => clearInterval(timer)
  })
}

/** Undoes {@link scheduleByIntervals}. */
export function scheduleBySharedTimer(): void {
  vi.mocked(periodicScheduler.every).mockRestore()
}

import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'

import { CancelledError } from '../../client/client-errors.ts'

/** Data loaded from the cluster, and the outcome of the last attempt. */
export interface LoadedData<T> {
  readonly data: Signal<T | null>
  readonly error: Signal<unknown>
  readonly isLoading: Signal<boolean>
  readonly reload: () => void
}

/** A tab without user input for this long reloads nothing, so that its session expires. */
const IDLE_MS = 15 * 60_000
let lastInputMs = Date.now()
for (const type of ['keydown', 'pointerdown', 'wheel']) {
  addEventListener(type, () => (lastInputMs = Date.now()), { passive: true })
}

/** Whether the tab is visible and was used recently. */
export function isTabInUse(): boolean {
  return document.visibilityState === 'visible' && Date.now() - lastInputMs < IDLE_MS
}

/**
 * Loads data for each key, and reloads it at each interval while the tab is visible and in use.
 * During a reload, and if it fails, the previous data stays.
 */
export function useLoadedData<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number | null = null,
): LoadedData<T> {
  const parts = useMemo(() => new Loading<T>(), [key])
  useEffect(() => {
    parts.run(load)
    if (everyMs === null) return () => parts.stop()
    const timer = setInterval(() => {
      if (isTabInUse()) parts.run(load)
    }, everyMs)
    return () => {
      clearInterval(timer)
      parts.stop()
    }
  }, [parts])
  return parts
}

class Loading<T> implements LoadedData<T> {
  readonly data = signal<T | null>(null)
  readonly error = signal<unknown>(null)
  readonly isLoading = signal(false)
  readonly reload = (): void => {
    if (this.#load !== null) this.run(this.#load, true)
  }
  #load: ((signal: AbortSignal) => Promise<T>) | null = null
  #running: AbortController | null = null

  /** Runs one load at a time. Only a forced load replaces a load that is running. */
  run(load: (signal: AbortSignal) => Promise<T>, isForced = false): void {
    if (this.#running !== null && !isForced) return
    this.#running?.abort()
    const running = new AbortController()
    this.#running = running
    this.#load = load
    this.isLoading.value = true
    load(running.signal)
      .then(
        (data) => {
          if (this.#running !== running) return
          this.data.value = data
          this.error.value = null
        },
        (error: unknown) => {
          if (this.#running === running && !(error instanceof CancelledError))
            this.error.value = error
        },
      )
      .finally(() => {
        if (this.#running !== running) return
        this.#running = null
        this.isLoading.value = false
      })
      .catch(() => undefined)
  }

  stop(): void {
    this.#running?.abort()
    this.#running = null
  }
}

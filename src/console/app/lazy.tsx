import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'

import { Skeleton } from '../controls/status.tsx'
import { texts } from '../texts.ts'
import { Failure } from './failure.tsx'

const starts: (() => void)[] = []
let isPreloading = false

/**
 * Loads the code of all pages in advance, because the controller that serves it may be unreachable
 * when a page is opened.
 */
export function loadPages(): void {
  isPreloading = true
  for (const start of starts) start()
}

/** A page whose code is loaded when it is first shown, or by {@link loadPages}. */
export function lazyComponent<P extends object>(
  load: () => Promise<ComponentType<P>>,
): ComponentType<P> {
  const loaded = signal<ComponentType<P> | null>(null)
  const failure = signal<unknown>(null)
  let isLoading = false
  const start = (): void => {
    if (isLoading) return
    isLoading = true
    failure.value = null
    load()
      .then((page) => (loaded.value = page))
      .catch((error: unknown) => {
        isLoading = false
        failure.value = error
      })
  }
  starts.push(start)
  // A component that is defined after `loadPages` was called is loaded immediately.
  if (isPreloading) start()
  return function Lazy(props: P) {
    const { value: Page } = loaded
    if (Page !== null) return <Page {...props} />
    if (failure.value !== null) return <Failure error={failure.value} retry={start} />
    start()
    return (
      <div class="stack" aria-busy="true" aria-label={texts.loading} role="status">
        <Skeleton width="30%" />
        <Skeleton />
      </div>
    )
  }
}

import { periodicScheduler } from '../lib/periodic-scheduler.ts'

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 250

/**
 * V8 starts a collection for the sake of buffers only when some hundred megabytes of them are dead;
 * here one is made as soon as they have grown by so much. `minor`: of the young ones alone, a few
 * milliseconds whatever the size of the heap. `major`: of all, for a thread whose heap is small.
 */
export function collectBuffers(type: 'minor' | 'major', growthBytesMax: number): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { readonly type: string }) => void
  // Threads that are started later would compile all modules of Node by themselves with that flag.
  setFlagsFromString('--no-expose-gc')
  const external = (): number => getHeapStatistics().external_memory
  let after = external()
  periodicScheduler.every(LOOK_MS, () => {
    const now = external()
    if (now < after) after = now
    if (now - after < growthBytesMax) return
    collect({ type })
    after = external()
  })
}

const HEAP_GROWTH_PERCENT = 25

/**
 * Collects each heap when it has grown by a quarter: by itself it would grow to several times what
 * is in use. This is set once a process has started. On its command line it
 * would make V8 refuse the compiled code that Node brings of its own modules, which takes a third
 * more processor time at each start, and short commands need no bound.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
}

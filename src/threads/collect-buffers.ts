import { periodicScheduler } from '../lib/periodic-scheduler.ts'

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const CHECK_MS = 250

/**
 * Checks four times a second whether buffers have grown by `growthBytesMax`, and then collects
 * garbage. By default, V8 starts a collection because of buffers only when they contain hundreds of
 * megabytes of garbage. `minor` collects only the young generation and takes a few milliseconds for
 * any heap size. `major` collects everything, for threads with a small heap.
 */
export function collectBufferGarbage(type: 'minor' | 'major', growthBytesMax: number): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { readonly type: string }) => void
  // The flag is reset, because while it is set, each thread that starts would compile all modules
  // of Node again.
  setFlagsFromString('--no-expose-gc')
  const external = (): number => getHeapStatistics().external_memory
  let after = external()
  periodicScheduler.every(CHECK_MS, () => {
    const now = external()
    if (now < after) after = now
    if (now - after < growthBytesMax) return
    collect({ type })
    after = external()
  })
}

const HEAP_GROWTH_PERCENT = 25

/**
 * Makes V8 collect garbage when the heap has grown by a quarter; by default the heap would grow to
 * several times its live size. Call it after the process has started: as a command-line flag, the
 * setting would make V8 reject Node's precompiled modules, which costs a third more processor time
 * at each start. Short commands do not need this call.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
}

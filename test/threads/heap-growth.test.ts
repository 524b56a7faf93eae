import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// Goal: a process with limited heap growth collects garbage more often, although the flag is set
// after its start. Method: separate processes, because V8 flags apply to a whole process; each
// process keeps the objects that it allocates.

const run = promisify(execFile)
const module = join(import.meta.dirname, '../../src/threads/collect-buffers.ts')

/** Counts full collections of a heap that grows to about 200 MiB. */
async function collections(before: string): Promise<number> {
  const script = `
    import { PerformanceObserver, constants } from 'node:perf_hooks'
    import { limitHeapGrowth } from '${module}'
    let count = 0
    new PerformanceObserver((list) => {
      count += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length
    }).observe({ entryTypes: ['gc'] })
    const kept = []
    ${before}
    for (let at = 0; at < 200; at += 1) {
      for (let n = 0; n < 8_000; n += 1) kept.push({ at, n, next: [n, at, n + at] })
      await new Promise((done) => setTimeout(done, 1))
    }
    console.log(count, kept.length)
  `
  const flags = ['--no-warnings', '--input-type=module', '--eval', script]
  const { stdout } = await run(process.execPath, flags)
  return Number(stdout.split(' ')[0])
}

test('a heap with limited growth is garbage-collected more often than a default heap', async () => {
  const [bounded, unbounded] = await Promise.all([
    collections('limitHeapGrowth()'),
    collections(''),
  ])
  expect(bounded).toBeGreaterThan(unbounded)
})

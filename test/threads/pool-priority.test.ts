import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { expect, test } from 'vitest'
import { lowerPoolPriority } from '../../src/threads/pool-priority.ts'

test.runIf(process.platform === 'linux')(
  'threads that hash passwords have a lower priority than all other threads, but a niceness of at most 10',
  async () => {
    await readFile(import.meta.filename)
    expect(lowerPoolPriority()).toBeGreaterThan(0)
    const others: number[] = []
    for (const thread of readdirSync('/proc/self/task')) {
      const name = readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim()
      const priority = getPriority(Number(thread))
      if (name === 'libuv-worker') {
        expect(priority).toBeGreaterThan(getPriority(process.pid))
        // Each step reduces the share by a fifth: after ten steps a tenth of it is left, after
        // nineteen a seventieth.
        expect(priority).toBeLessThanOrEqual(10)
      } else others.push(priority)
    }
    expect(new Set(others)).toEqual(new Set([getPriority(process.pid)]))
  },
)

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { isPathLocked } from '../../src/cli/terminal/process-lock.ts'

const FILE = JSON.stringify(join(import.meta.dirname, '../../src/cli/terminal/process-lock.ts'))
/** Acquires a lock, and then accepts no connection. */
const HOLDER = `const { acquirePathLock } = await import(${FILE})
await acquirePathLock('router', process.argv[1])
process.stdout.write('ready', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))`
/** More than the connections that Node.js lets wait until the process accepts them. */
const CONNECTIONS = 600

test('a process that holds the lock of a path and is too busy to accept connections counts as running, until it ends', async () => {
  const path = join(import.meta.dirname, 'busy-router.yml')
  const userIds = [process.getuid?.() ?? 0]
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', HOLDER, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(holder, 'exit')
  try {
    await once(holder.stdout, 'data')
    const answers = new Set<boolean>()
    for (let count = 0; count < CONNECTIONS; count += 1) {
      answers.add(await isPathLocked('router', path, userIds))
    }
    expect([...answers]).toEqual([true])
  } finally {
    holder.kill('SIGKILL')
    await ended
  }
  expect(await isPathLocked('router', path, userIds)).toBe(false)
})

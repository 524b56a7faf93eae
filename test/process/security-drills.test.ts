import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { flotilla, TestCluster } from './support/cluster.ts'
import { linesOf, run } from './support/page.ts'

// Goal: an operator who follows the drills of docs/internals/security.md on four controllers gets
// the documented results.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ nodes: 4 })
  symlinkSync(cluster.folder, join(cluster.dir, '.flotilla'))
  mkdirSync(join(cluster.dir, 'bin'))
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test('the drills of docs/internals/security.md give their documented results when pasted in order', async () => {
  const path = `PATH='${dirname(flotilla)}':$PATH\n`
  const { code, output } = await run(
    path + linesOf('internals/security.md', cluster.port),
    cluster.dir,
  )
  expect(code, output).toBe(0)
  expect(output).toContain('berta has to log in again\n')
  expect(output).toMatch(/^updated authenticator/m)
  expect(output).toMatch(/^removed ctrl4$/m)
  expect(output).toMatch(/^removed ctrl3; within seconds all API sessions end/m)
  // The enrollment of step 1 is in neither list: it was made after the one, and withdrawn before
  // the other.
  expect(output).toMatch(/^created identity pending/m)
  expect(output).not.toMatch(/ ott .*pending/)
})

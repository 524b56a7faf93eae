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

/** The controllers withdraw the enrollment that a drill creates some seconds after the removal. */
const UNTIL_WITHDRAWN = `while flotilla list enrollments | grep ' ott .*pending'; do sleep 0.5; done
flotilla list enrollments
echo 'no enrollment is left'
`

test('the commands of docs/internals/security.md give the documented results when pasted in order', async () => {
  const path = `PATH='${dirname(flotilla)}':$PATH\n`
  const { code, output } = await run(
    `${path}${linesOf('internals/security.md', cluster.port)}\n${UNTIL_WITHDRAWN}`,
    cluster.dir,
  )
  expect(code, output).toBe(0)
  expect(output).toContain('berta has to log in again\n')
  expect(output).toMatch(/^updated authenticator/m)
  expect(output).toMatch(/^removed ctrl4$/m)
  expect(output).toMatch(/^removed ctrl3; within seconds all API sessions end/m)
  expect(output).toMatch(/^created identity pending/m)
  expect(output).toMatch(/^no enrollment is left$/m)
})

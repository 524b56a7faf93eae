import { symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

import { flotilla } from '../support/program.ts'
import { TestCluster } from './support/cluster.ts'
import { linesOf, run } from './support/page.ts'

// Goal: whoever follows docs/administration.md word for word administers three controllers from one terminal.

test('each line of docs/administration.md works when it is typed as it stands there, from top to bottom', async () => {
  await using cluster = await TestCluster.start()
  const { dir } = cluster
  symlinkSync(cluster.folder, join(dir, '.flotilla'))
  const path = `PATH='${dirname(flotilla)}':$PATH\n`
  const { code, output } = await run(path + linesOf('administration.md', cluster.port), dir)
  expect(code, output).toBe(0)
  expect(output).toContain('deleted service policy dial-web\n')
  expect(output).toContain('done: 0 created, 1 updated, 0 deleted\n')
  expect(output).toContain('logged out of net\n')
})

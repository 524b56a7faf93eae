import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { TestCluster } from './support/cluster.ts'
import { linesOf, run } from './support/page.ts'

// Goal: whoever follows docs/log-in.md word for word, with curl and openssl alone, turns MFA on and uses it on three controllers.

test('each line of docs/log-in.md works when it is typed as it stands there, from top to bottom', async () => {
  await using cluster = await TestCluster.start()
  const { dir } = cluster
  symlinkSync(cluster.folder, join(dir, '.flotilla'))
  const { code, output } = await run(linesOf('log-in.md', cluster.port), dir)
  expect(code, `the page needs curl and openssl.\n${output}`).toBe(0)
  expect(output).toMatch(/"isMfaEnabled":true/)
  expect(output).toMatch(/"authQueries":\[\{[^\]]*"isTotpEnrolled":true/)
  expect(output).toMatch(/"isMfaComplete":true/)
})

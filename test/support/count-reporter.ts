import { appendFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/**
 * Appends `passed failed skipped` of one run to the file named by FLOTILLA_TEST_COUNTS, so that several
 * runs can close with one line. Modules that failed to load count as one failure each.
 */
class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const file = process.env['FLOTILLA_TEST_COUNTS']
    if (file === undefined) return
    let passed = 0
    let failed = 0
    let skipped = 0
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) failed += 1
      for (const test of module.children.allTests()) {
        const state = test.result().state
        if (state === 'passed') passed += 1
        else if (state === 'failed') failed += 1
        else skipped += 1
      }
    }
    appendFileSync(file, `${passed} ${failed} ${skipped}\n`)
  }
}

// Vitest loads a reporter by the default export of its module; there is no other way.
// eslint-disable-next-line no-restricted-syntax
export default CountReporter

import { appendFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/**
 * Appends `passed failed skipped` of one run to the file named by FLOTILLA_TEST_COUNTS, so that a
 * summary line can cover several runs. Modules that failed to load count as one failure each. If
 * FLOTILLA_TEST_FAILURES is set too, the file that it names gets one line per failure, because some
 * readers see only the end of a long log.
 */
class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const file = process.env['FLOTILLA_TEST_COUNTS']
    if (file === undefined) return
    let passed = 0
    let failed = 0
    let skipped = 0
    const failures: string[] = []
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) {
        failed += 1
        failures.push(`${module.relativeModuleId}: ${shortened(module.errors()[0]?.message)}`)
      }
      for (const test of module.children.allTests()) {
        const state = test.result().state
        if (state === 'passed') passed += 1
        else if (state === 'failed') {
          failed += 1
          const error = test.result().errors?.[0]?.message
          failures.push(`${module.relativeModuleId} > ${test.fullName}: ${shortened(error)}`)
        } else skipped += 1
      }
    }
    appendFileSync(file, `${passed} ${failed} ${skipped}\n`)
    const list = process.env['FLOTILLA_TEST_FAILURES']
    if (list !== undefined && failures.length > 0) appendFileSync(list, `${failures.join('\n')}\n`)
  }
}

const FAILURE_TEXT_MAX = 600

/**
 * Keeps both ends of a long message: it begins with the expectation, and may end with the last log
 * lines of a program that exited.
 */
function shortened(message = 'no message'): string {
  const text = message.replaceAll(/\s*\n\s*/g, ' | ')
  if (text.length <= FAILURE_TEXT_MAX) return text
  return `${text.slice(0, FAILURE_TEXT_MAX / 2)} ... ${text.slice(-FAILURE_TEXT_MAX / 2)}`
}

// Vitest loads a reporter only through the default export of its module.
// oxlint-disable-next-line import/no-default-export
export default CountReporter

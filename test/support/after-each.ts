import { afterAll, afterEach } from 'vitest'
import { appliedLogs } from './applied-logs.ts'

// After each test, the kept logs that have grown during the test are checked.
appliedLogs.isKept = true
// Some commands set a stricter umask for the whole process; the former one is restored because test
// files share a process.
const umask = process.umask()
afterEach(async () => {
  process.umask(umask)
  await appliedLogs.judge()
})
afterAll(() => {
  appliedLogs.endFile()
})

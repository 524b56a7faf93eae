import { afterAll, afterEach } from 'vitest'
import { appliedLogs } from './applied-logs.ts'

// After every test that wrote a log, the log is replayed automatically.
appliedLogs.isKept = true
// Commands set a stricter umask for the whole process; it is restored because test files share a
// process.
const umask = process.umask()
afterEach(async () => {
  process.umask(umask)
  await appliedLogs.judge()
})
afterAll(() => {
  appliedLogs.endFile()
})

import { afterAll, afterEach } from 'vitest'
import { appliedLogs } from './applied-logs.ts'

// Every test that wrote a log has it replayed, without being asked to.
appliedLogs.isKept = true
afterEach(async () => {
  await appliedLogs.judge()
})
afterAll(() => {
  appliedLogs.endFile()
})

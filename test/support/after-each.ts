import { afterAll, afterEach } from 'vitest'
import { appliedLogs } from './applied-logs.ts'

// Every test that wrote a log has it replayed, without being asked to.
appliedLogs.isKept = true
// Verbs narrow it for the process that they are all of; files that share a process must not have it
// from each other.
const umask = process.umask()
afterEach(async () => {
  process.umask(umask)
  await appliedLogs.judge()
})
afterAll(() => {
  appliedLogs.endFile()
})

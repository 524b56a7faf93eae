import { expect, test } from 'vitest'

import { lockedInodes } from '../../src/migrate/bolt/file-locks.ts'

test('the parser of /proc/locks returns each locked file once, and no file whose lock is only requested', () => {
  const locks = `1: POSIX  ADVISORY  READ 1204 fd:00:917 128 128
2: FLOCK  ADVISORY  WRITE 812 08:01:1234 0 EOF
2: -> FLOCK  ADVISORY  WRITE 813 08:01:1235 0 EOF
3: OFDLCK ADVISORY  READ -1 00:06:1036 0 EOF
4: LEASE  ACTIVE    READ 77 103:02:55 0 EOF
`
  expect([...lockedInodes(locks)]).toEqual(['fd:00:917', '08:01:1234', '00:06:1036', '103:02:55'])
  expect([...lockedInodes('')]).toEqual([])
})

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { runBackupHook } from '../../src/controller/backups/backup-hook.ts'

// The attack: the name of a backup file, or an argument of the command, contains text that a shell
// would execute.

let dir = ''
const path = (name: string): string => join(dir, name)
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-hook-'))
})
afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
})

test('a shell never interprets the name of a backup file', async () => {
  writeFileSync(path('hook'), `#!/bin/sh\nprintf '%s' "$*" > '${path('noted')}'\n`)
  chmodSync(path('hook'), 0o755)
  const name = `; touch ${path('pwned')}`
  const command = [path('hook'), `$(touch ${path('pwned')})`]
  const stop = new AbortController().signal
  expect(await runBackupHook({ command, timeoutMs: 20_000 }, name, stop)).toBeNull()
  expect(readFileSync(path('noted'), 'utf8')).toBe(`$(touch ${path('pwned')}) ${name}`)
  expect(existsSync(path('pwned'))).toBe(false)
})

import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

import { runAsFileOwner } from '../../src/controller/run-as-file-owner.ts'
import { lockDataFolder } from '../../src/store/folder/folder-lock.ts'

// ID of a user that owns no files here.
const NOBODY = 65_534
const isRoot = process.geteuid?.() === 0

test('a command that root runs accesses a data folder as the owner of the folder, and is root again afterwards', async () => {
  // In /tmp, because the other user may have no access to a clone in root's home.
  const folder = mkdtempSync('/tmp/flotilla-owner-')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  const owner = isRoot ? NOBODY : process.geteuid?.()
  if (isRoot) {
    chownSync(folder, NOBODY, NOBODY)
    chownSync(data, NOBODY, NOBODY)
  }
  const before = process.geteuid?.()
  await runAsFileOwner(data, async () => {
    const lock = await lockDataFolder(data)
    await lock.release()
  })
  const left = readdirSync(data, { recursive: true, encoding: 'utf8' })
  expect(left.length).toBeGreaterThan(1)
  for (const name of left) expect(statSync(join(data, name)).uid, name).toBe(owner)
  expect(process.geteuid?.()).toBe(before)
  await expect(runAsFileOwner(data, () => Promise.reject(new Error('it failed')))).rejects.toThrow()
  expect(process.geteuid?.()).toBe(before)
})

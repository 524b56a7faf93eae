import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

vi.mock(import('node:fs'), async (original) => ({
  ...(await original()),
  rmSync: () => {
    throw Object.assign(new Error('EACCES: permission denied, rm'), {
      code: 'EACCES',
      syscall: 'rm',
    })
  },
}))

const { setAside } = await import('../../src/controller/start/set-aside.ts')

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-aside-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

test('a file is set aside although an older copy cannot be removed', () => {
  const path = join(folder, 'endpoints.yml')
  for (const day of [1, 2, 3]) {
    writeFileSync(path, String(day))
    expect(setAside(path, Date.UTC(2026, 0, day))).toBe(
      join(folder, `endpoints.yml.set-aside-2026010${day}T000000.000Z`),
    )
  }
  expect(readdirSync(folder)).toHaveLength(3)
})

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

// Method: the Makefile in a folder of its own, with a script in place of npm that empties what npm ci would empty.

let folder = ''
let project = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-make-'))
  project = join(folder, 'project')
  const programs = join(folder, 'programs')
  for (const path of [project, programs]) mkdirSync(path)
  copyFileSync(join(import.meta.dirname, '../Makefile'), join(project, 'Makefile'))
  for (const name of ['package.json', 'package-lock.json']) writeFileSync(join(project, name), '{}')
  for (const name of ['npm', 'tsc']) {
    const program = join(programs, name)
    const effect = name === 'npm' ? 'rm -f node_modules/*; mkdir -p node_modules' : 'true'
    writeFileSync(program, `#!/bin/sh\necho "${name} was run"\n${effect}\n`)
    chmodSync(program, 0o700)
  }
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function make(): { readonly status: number | null; readonly output: string } {
  const env = { PATH: `${join(folder, 'programs')}:${process.env['PATH'] ?? ''}` }
  const done = spawnSync('make', ['build'], { cwd: project, env, encoding: 'utf8' })
  return { status: done.status, output: done.stdout + done.stderr }
}

test('make installs into a folder of the project itself', () => {
  const { status, output } = make()
  expect(output).toContain('npm was run')
  expect(output).toContain('tsc was run')
  expect(status).toBe(0)
})

test('make refuses to install through a symbolic link, which would empty the folder of another project', () => {
  const other = join(folder, 'other')
  mkdirSync(other)
  writeFileSync(join(other, 'installed'), '')
  symlinkSync(other, join(project, 'node_modules'))
  const { status, output } = make()
  expect(status).not.toBe(0)
  expect(output).toContain('node_modules is a symbolic link')
  expect(output).not.toContain('was run')
  expect(existsSync(join(other, 'installed'))).toBe(true)
})

import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { MarkedSource } from '../guards/markers.ts'
import { misfitsOf, readMutations } from '../guards/mutation.ts'
import { bugs, fileStem } from './index.ts'
import { root } from './tree.ts'

// Preconditions of `make zoo`, and one of its bugs; `make zoo`, part of `make nightly`, tests all
// of them.

const folder = import.meta.dirname

test('each of the fifty-two planted bugs (mutations of the source) has a number, a mutation and the tests that must detect it', () => {
  expect(bugs.map(({ number }) => number)).toEqual(Array.from({ length: 52 }, (_, at) => at + 1))
  const stems = bugs.map(fileStem)
  expect(readMutations(folder).map(({ name }) => name)).toEqual(stems)
  const played = bugs.filter(({ caughtBy }) => caughtBy === 'scenario').map(fileStem)
  expect(readdirSync(join(folder, 'scenarios')).sort()).toEqual(played.map((stem) => `${stem}.ts`))
})

test('every mutation that plants a bug can be applied to the source', () => {
  expect(misfitsOf(readMutations(folder), MarkedSource.read(root))).toEqual([])
})

test('the random simulation finds at least thirty of the planted bugs, each with a known seed', () => {
  const found = bugs.filter(({ caughtBy }) => caughtBy === 'campaign')
  expect(found.length).toBeGreaterThanOrEqual(30)
  expect(found.filter(({ seed }) => seed === undefined)).toEqual([])
})

test('the random simulation finds the planted bug with the number 14', async () => {
  const words = ['test/zoo/run.ts', '--only', '14']
  const { stdout } = await promisify(execFile)('node', words, { cwd: root })
  expect(stdout.trim().split('\n').at(-1)).toBe('1 of 1 caught')
})

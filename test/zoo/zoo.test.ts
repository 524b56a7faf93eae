import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { bugs, fileStem } from './index.ts'
import { refusalOf, root } from './tree.ts'

// What `make zoo` needs in order to say anything, and a few of its bugs; that all are caught it says itself.

const folder = import.meta.dirname

test('each of the fifty-two bugs has its number, its patch and whatever is to catch it', () => {
  expect(bugs.map(({ number }) => number)).toEqual(Array.from({ length: 52 }, (_, at) => at + 1))
  const stems = bugs.map(fileStem)
  const patches = readdirSync(folder).filter((name) => name.endsWith('.patch'))
  expect(patches.sort()).toEqual(stems.map((stem) => `${stem}.patch`))
  const played = bugs.filter(({ caughtBy }) => caughtBy === 'scenario').map(fileStem)
  expect(readdirSync(join(folder, 'scenarios')).sort()).toEqual(played.map((stem) => `${stem}.ts`))
})

test('every patch fits the source as it stands', async () => {
  const refused: string[] = []
  for (const bug of bugs) {
    const refusal = await refusalOf(join(folder, `${fileStem(bug)}.patch`))
    if (refusal !== null) refused.push(`${fileStem(bug)}: ${refusal}`)
  }
  expect(refused, 'plant the bug anew in what stands there now').toEqual([])
})

test('every line that a patch adds stands beside one that the source has', () => {
  const bare = bugs.filter((bug) =>
    /^@@ -\d+,0 \+/m.test(readFileSync(join(folder, `${fileStem(bug)}.patch`), 'utf8')),
  )
  expect(bare.map(fileStem), 'an addition by its number alone fits any source').toEqual([])
})

test('at least thirty of them are left to the random campaign, each with a seed that is known to find it', () => {
  const found = bugs.filter(({ caughtBy }) => caughtBy === 'campaign')
  expect(found.length).toBeGreaterThanOrEqual(30)
  expect(found.filter(({ seed }) => seed === undefined)).toEqual([])
})

test('two of the bugs are caught, one by the campaign and one by its scenario', async () => {
  const words = ['test/zoo/run.ts', '--only', '14,42']
  const { stdout } = await promisify(execFile)('node', words, { cwd: root })
  expect(stdout.trim().split('\n').at(-1)).toBe('2 of 2 caught')
})

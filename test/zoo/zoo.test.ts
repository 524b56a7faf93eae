import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bugs, fileStem } from './index.ts'
import { refusalOf } from './tree.ts'

// What `make zoo` needs in order to say anything; that each bug is caught it says itself.

const folder = import.meta.dirname

test('each of the forty-two bugs has its number, its patch and whatever is to catch it', () => {
  expect(bugs.map(({ number }) => number)).toEqual(Array.from({ length: 42 }, (_, at) => at + 1))
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

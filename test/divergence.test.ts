import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withoutTest } from './support/titles.ts'

const page = join(import.meta.dirname, '../docs/internals/divergence.md')

test('docs/internals/divergence.md names an existing test for every difference from OpenZiti’s API document', () => {
  const [, section = ''] = readFileSync(page, 'utf8').split('## From the document of the two APIs')
  const [rows = ''] = section.split('\n## ')
  const proofs = [...rows.matchAll(/`([\w/-]+\.test\.ts > [^`]+)` \|$/gm)].map(
    ([, proof = '']) => proof,
  )
  const differences = rows.split('\n').filter((line) => line.startsWith('| ')).length - 1
  expect(proofs).toHaveLength(differences)
  expect(differences).toBeGreaterThan(8)
  expect(withoutTest(proofs)).toEqual([])
})

import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { applyPatch, attackTestOf, parsePatch, readPatches } from './patch.ts'

// That each deleted guard is caught is shown by `make guards`; here only that the deletions still fit the code.

const root = resolve(import.meta.dirname, '../..')
const attackPatches = readPatches(join(root, 'test/attacks'))
const patches = [...readPatches(import.meta.dirname), ...attackPatches]

test.for(patches)('$name still fits the code: $guard', (patch) => {
  const text = readFileSync(join(root, patch.file), 'utf8')
  expect(applyPatch(patch, text)).not.toBe(text)
})

test('each attack has the patch that removes its guard, and each such patch its attack', () => {
  const attacks = readdirSync(join(root, 'test/attacks'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/attacks/${file}`)
  const covered = new Set(attackPatches.map(({ name }) => attackTestOf(name)))
  expect([...covered].sort()).toEqual(attacks.sort())
})

test('a patch whose lines are gone, or stand there twice, is refused', () => {
  const patch = parsePatch(
    'p',
    '# Guard: g.\n--- a/src/x.ts\n+++ b/src/x.ts\n@@ -1,2 +1 @@\n a\n-b\n',
  )
  expect(applyPatch(patch, 'z\na\nb\nc\n')).toBe('z\na\nc\n')
  expect(() => applyPatch(patch, 'a\nc\n')).toThrow('nowhere')
  expect(() => applyPatch(patch, 'a\nb\na\nb\n')).toThrow('more than once')
  expect(() => parsePatch('p', '# Guard: g.\n--- a/src/x.ts\n')).toThrow('not the deletion')
})

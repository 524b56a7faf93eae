import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { applyPatch, parsePatch, readPatches } from './patch.ts'

// That each deleted guard is caught is shown by `make guards`; here only that the deletions still fit the code.

const root = resolve(import.meta.dirname, '../..')
const patches = readPatches(import.meta.dirname)

test.for(patches)('$name still fits the code: $guard', (patch) => {
  const text = readFileSync(join(root, patch.file), 'utf8')
  expect(applyPatch(patch, text)).not.toBe(text)
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

import { expect, test } from 'vitest'

import { evaluatesPosture } from '../../src/lib/router-capabilities.ts'

test.each([
  ['of 2.1', [1, 2, 4, 5, 6], true],
  ['of 2.0', [1], true],
  ['of 1.6', [], false],
  ['of this product', [1, 2], false],
])('whether a router %s evaluates posture data', (_of, bits, judges) => {
  expect(evaluatesPosture(new Set(bits))).toBe(judges)
})

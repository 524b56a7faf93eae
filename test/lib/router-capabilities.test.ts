import { expect, test } from 'vitest'

import { evaluatesPosture } from '../../src/lib/router-capabilities.ts'

test.each([
  ['of OpenZiti 2.1', [1, 2, 4, 5, 6], true],
  ['of OpenZiti 2.0', [1], true],
  ['of OpenZiti 1.6', [], false],
  ['of Flotilla', [1, 2], false],
])('a router %s, with the capabilities %j, evaluates posture data: %s', (_of, bits, judges) => {
  expect(evaluatesPosture(new Set(bits))).toBe(judges)
})

import { expect, test } from 'vitest'

import { evaluatesPosture } from '../../src/lib/router-capabilities.ts'

test.each([
  ['of OpenZiti 2.1', 'evaluates', [1, 2, 4, 5, 6]],
  ['of OpenZiti 2.0', 'evaluates', [1]],
  ['of OpenZiti 1.6', 'does not evaluate', []],
  ['of Flotilla', 'does not evaluate', [1, 2]],
])('a router %s %s posture data, according to its capabilities %j', (_of, judges, bits) => {
  expect(evaluatesPosture(new Set(bits))).toBe(judges === 'evaluates')
})

import { expect, test } from 'vitest'

import { fuzzRouters } from './fuzz.ts'

test('a message of any type with any bytes closes at most the channel of its sender', async () => {
  const closed = await fuzzRouters(6000, 7)
  expect(closed).toBeGreaterThan(100)
})

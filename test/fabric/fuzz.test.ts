import { expect, test } from 'vitest'

import { fuzzRouters } from './fuzz.ts'

test('messages of any type with any bytes close only the channel of their sender', async () => {
  const closed = await fuzzRouters(6000, 7)
  expect(closed).toBeGreaterThan(100)
})

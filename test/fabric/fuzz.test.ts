import { expect, test } from 'vitest'

import { fuzzRouters } from './fuzz.ts'

test('messages of any type with any bytes close the channel of their sender, and do nothing else', async () => {
  const closed = await fuzzRouters(6000, 7)
  expect(closed).toBeGreaterThan(100)
})

import { afterEach, beforeEach, expect, test } from 'vitest'

import { settle } from '../channel/pipe.ts'
import { RouterStage } from '../routers/stage.ts'
import { routerLimits } from '../../src/routers/limits.ts'

// The attack: a router opens and drops its channel as fast as it can, and each time costs all controllers.

let stage: RouterStage
beforeEach(() => {
  stage = new RouterStage()
})
afterEach(() => stage.channels.stop())

test('a router that comes and goes is refused as busy, and others connect', async () => {
  for (let at = 0; at < routerLimits.routerConnectsPerMinuteMax; at += 1) {
    const pipe = await stage.dial('restless')
    pipe.destroy()
    await settle()
  }
  const refused = await stage.dial('restless')
  expect(stage.channels.connection('restless')).toBeUndefined()
  const [answer] = refused.ofType(2)
  expect([answer?.headers.get(2)?.[0], answer?.headers.get(13)?.[0]]).toEqual([0, 1])
  await stage.dial('other')
  expect(stage.channels.connection('other')).toBeDefined()
})
